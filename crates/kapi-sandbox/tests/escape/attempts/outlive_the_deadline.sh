# says: goes on after its time, deaf to every signal
# cases: E62 E63 E66
# levels: native podman
# alone: it ends by its deadline
# deadline-ms: 4000
# ends: DeadlinePassed
# control: host

trap '' TERM INT HUP QUIT PIPE USR1 USR2 ALRM
echo tried "to stay"
(setsid setsid sleep "$MARK" </dev/null >/dev/null 2>&1 &)
until pgrep -f "^sleep $MARK" >/dev/null; do :; done
test "$WORKSPACE" != /workspace || while :; do :; done
