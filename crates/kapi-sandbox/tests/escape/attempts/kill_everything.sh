# says: ends everything it can, whoever keeps watch over it first of all
# cases: A50 A43 E60
# levels: native podman
# alone: it would end the attempts beside it
# ends: anyhow
# control: host

(setsid setsid sleep "$MARK" >/dev/null 2>&1 </dev/null &)
until pgrep -f "^sleep $MARK" >/dev/null; do :; done
echo tried kill
# Only where it is known to stand alone: outside, that would be everybody.
test "$WORKSPACE" != /workspace || { kill -STOP 1; kill -TERM 1; kill -KILL 1; kill -KILL -1; }
