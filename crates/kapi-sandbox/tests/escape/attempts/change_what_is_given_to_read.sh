# says: changes what it was given to read only, the attempts themselves
# cases: E75 A16
# levels: native podman
# refused: EROFS EACCES EPERM EXDEV EBUSY
# control: none

plant() { echo planted >> "$1"; }
for file in "$ATTEMPTS"/batch.sh "$ATTEMPTS"/new; do
  test "$file" = "$ATTEMPTS/batch.sh" && test "$LEVEL" = none && continue
  refuse "write-${file##*/}" plant "$file"
done
refuse make mkdir "$ATTEMPTS/made"
refuse mode chmod 777 "$ATTEMPTS"
test "$LEVEL" = none || refuse move mv "$ATTEMPTS" "$HOME/attempts"
refuse times touch "$ATTEMPTS"
refuse link ln "$ATTEMPTS/batch.sh" "$ATTEMPTS/second"
