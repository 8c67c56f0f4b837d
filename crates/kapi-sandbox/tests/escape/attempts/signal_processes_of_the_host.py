# says: ends or stops processes of the host by their numbers
# cases: E60 A13
# levels: native podman
# refused: ESRCH EPERM
# control: none

refuse("see", lambda: os.kill(HOST_PID, 0))
refuse("stop", lambda: os.kill(HOST_PID, signal.SIGSTOP))
refuse("kill", lambda: os.kill(HOST_PID, signal.SIGKILL))
refuse("group", lambda: os.killpg(HOST_PID, signal.SIGKILL))
refuse("by-descriptor", lambda: call("pidfd_send_signal", os.pidfd_open(HOST_PID), 9, 0, 0))
refuse("queue", lambda: call(129, HOST_PID, 9, ctypes.create_string_buffer(128)))
refuse("priority", lambda: os.setpriority(os.PRIO_PROCESS, HOST_PID, 19))
refuse("limits", lambda: call(302, HOST_PID, 7, 0, ctypes.create_string_buffer(16)))
