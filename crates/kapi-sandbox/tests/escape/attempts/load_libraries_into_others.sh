# says: has programs of others load its library
# cases: E2 A24
# levels: native podman
# refused: EROFS EACCES ENOENT EPERM
# control: writable /usr/lib/python3

put() { echo "import os" > "$1"; }
refuse preload put /etc/ld.so.preload
refuse configuration put /etc/ld.so.conf.d/planted.conf
refuse python put "/usr/lib/python3/$PLANTED"
refuse profile put /etc/profile.d/planted.sh
refuse shell put /etc/bash.bashrc
refuse inputrc put /etc/inputrc
refuse gconv put /usr/lib/gconv/planted
