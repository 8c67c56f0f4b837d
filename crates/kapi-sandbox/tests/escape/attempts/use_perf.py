# says: measures the machine and other processes
# cases: E42 A36
# levels: native podman
# refused: EPERM ENOSYS
# control: none

attributes = struct.pack("<IIQ", 1, 112, 0) + bytes(96)
refuse("self", lambda: call("perf_event_open", attributes, 0, -1, -1, 0))
refuse("everything", lambda: call("perf_event_open", attributes, -1, 0, -1, 0))
refuse("broken", lambda: call("perf_event_open", 0, 0, 0, 0, 0))
