# says: writes more to the host's disk than it may
# cases: E17 A37
# levels: native podman
# resources: disk=16777216
# exceeded: disk 16 MiB
# ends: anyhow
# control: unlimited

echo tried disk
head -c 50331648 /dev/zero > fill
# Who looks only now and then has this long to do so.
sleep "$PATIENCE"
echo escaped disk "$(stat -c %s fill)"
