# says: lets somebody log in as the person
# cases: E1
# levels: native podman
# refused: ENOENT
# control: mounted

add() { echo planted >> "$1"; }
keys=$(dirname "$HOST_SECRET")/.ssh/authorized_keys
refuse authorized-keys add "$keys"
refuse through-proc add "/proc/self/root$keys"
refuse dots add "../../../../../..$keys"
