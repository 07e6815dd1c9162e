// Package crashpoint names the places where a gateway may die while it decides
// an order, so that a test can have it die there.
//
// It promises that a program built without the tag "crashpoints" contains none
// of them: [Hit] is then an empty function, which the compiler leaves out. With
// the tag the process kills itself with SIGKILL, as a crash or the kernel would,
// at the one point that the environment names (see [Variable]).
//
// It must not know what happens at a point, and it decides nothing.
package crashpoint
