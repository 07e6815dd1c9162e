package bench

import "syscall"

// ownGroup keeps an interrupt at the terminal from reaching the child: it is
// this process's to handle. The kernel ends the child when the thread that
// starts it ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
