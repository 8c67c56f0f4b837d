# says: has a value with several lines become several variables
# cases: A23
# levels: native podman
# control: injected

test "$SEVERAL_LINES" = $'one\nINJECTED=1' || echo escaped cut "$SEVERAL_LINES"
test -z "${INJECTED+set}" || echo escaped injected
grep -qz '^INJECTED=' /proc/self/environ && echo escaped injected
echo tried lines
