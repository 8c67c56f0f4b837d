# says: leaves processes that hold the output open, ignore signals and belong to no group
# cases: E62 E63 E64 A43
# levels: native podman
# alone: its daemons would wait for those beside it
# control: host

for number in 1 2 3; do
  (trap '' TERM INT HUP PIPE; setsid setsid bash -c "trap '' TERM INT HUP; exec sleep $MARK" </dev/null >/dev/null 2>&1 &)
done
(setsid setsid bash -c "kill -STOP \$\$; exec sleep $MARK" </dev/null >/dev/null 2>&1 &)
until test "$(pgrep -fc "^sleep $MARK")" -ge 3; do sleep 0.01; done
echo tried daemons
