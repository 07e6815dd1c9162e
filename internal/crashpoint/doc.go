// Package crashpoint names the places where a gateway may die or freeze while it
// decides an order, so that a test can have it do so there.
//
// It promises that a program built without the tag "crashpoints" contains none
// of them: [Hit] is then an empty function, which the compiler leaves out. With
// the tag the process kills itself with SIGKILL, as a crash or the kernel would,
// at the one point that the environment names (see [Variable]). Or it stops
// itself with SIGSTOP (see [FreezeVariable]), as a machine does that is short of
// memory or is moved: once, and after SIGCONT it goes on and never stops again.
//
// It must not know what happens at a point, and it decides nothing.
package crashpoint
