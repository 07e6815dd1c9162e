// Package deploytest tests the files that bring oncegate onto machines: the
// systemd unit, what a release is made of, and the settings in the Kubernetes
// manifests. The manifests themselves are checked by a module of their own,
// deploy/kubernetes/check.
//
// The gateway's own loader judges what they configure; it must not know the
// gateway otherwise. With the build tag "systemd" ("make systemd") machines are
// booted with the unit on them.
package deploytest
