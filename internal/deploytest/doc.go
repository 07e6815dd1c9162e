// Package deploytest tests the files that bring oncegate onto machines: the
// systemd unit, and the settings in the Kubernetes manifests. The manifests
// themselves are checked by a module of their own, deploy/kubernetes/check.
//
// The gateway's own loader judges what they configure; it must not know the
// gateway otherwise.
package deploytest
