//go:build unix && !linux

package bench

import "syscall"

// ownGroup keeps an interrupt at the terminal from reaching the child. Only
// Linux can end it with its parent: a bench that is killed leaves it behind here.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
