// Package check holds the manifests against the types of the Kubernetes API: an
// unknown field, a wrong type and a name that leads nowhere are errors here and
// not in the cluster.
package check

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// manifests are the objects of one kustomization.
type manifests struct {
	byKind map[string][]runtime.Object
}

// strict decodes one object and refuses what the API does not know.
func strict(t *testing.T, document []byte) (runtime.Object, error) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme,
		policyv1.AddToScheme, autoscalingv2.AddToScheme, networkingv1.AddToScheme,
	} {
		require.NoError(t, add(scheme))
	}
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	object, _, err := codecs.UniversalDeserializer().Decode(document, nil, nil)
	return object, err
}

func build(t *testing.T, dir string) manifests {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	require.NoError(t, err)
	m := manifests{byKind: map[string][]runtime.Object{}}
	for _, resource := range built.Resources() {
		document, err := resource.AsYAML()
		require.NoError(t, err)
		object, err := strict(t, document)
		require.NoError(t, err, string(document))
		m.byKind[resource.GetKind()] = append(m.byKind[resource.GetKind()], object)
	}
	return m
}

// one returns the only object of a kind.
func one[T runtime.Object](t *testing.T, m manifests, kind string) T {
	t.Helper()
	require.Len(t, m.byKind[kind], 1, kind)
	object, ok := m.byKind[kind][0].(T)
	require.True(t, ok, "%T", m.byKind[kind][0])
	return object
}

// each runs a test on the base and on the overlay.
func each(t *testing.T, test func(t *testing.T, m manifests)) {
	t.Helper()
	for _, dir := range []string{"../base", "../overlays/production"} {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			test(t, build(t, dir))
		})
	}
}

func TestWhatTheAPIDoesNotKnowIsRefused(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../base/deployment.yaml")
	require.NoError(t, err)
	var deployment map[string]any
	require.NoError(t, yaml.Unmarshal(document, &deployment))
	deployment["spec"].(map[string]any)["minReadySecond"] = 3
	document, err = yaml.Marshal(deployment)
	require.NoError(t, err)
	_, err = strict(t, document)
	require.ErrorContains(t, err, "minReadySecond")
}

func TestEverythingIsThere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m manifests) {
		one[*appsv1.Deployment](t, m, "Deployment")
		one[*batchv1.Job](t, m, "Job")
		one[*policyv1.PodDisruptionBudget](t, m, "PodDisruptionBudget")
		one[*autoscalingv2.HorizontalPodAutoscaler](t, m, "HorizontalPodAutoscaler")
		one[*networkingv1.NetworkPolicy](t, m, "NetworkPolicy")
		one[*corev1.ConfigMap](t, m, "ConfigMap")
		require.Len(t, m.byKind["Service"], 2)
		require.Empty(t, m.byKind["Secret"], "secrets are not kept with the manifests")
	})
}

func TestSelectorsFindTheGatewaysAndNothingElse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m manifests) {
		gateway := labels.Set(one[*appsv1.Deployment](t, m, "Deployment").Spec.Template.Labels)
		migrate := labels.Set(one[*batchv1.Job](t, m, "Job").Spec.Template.Labels)
		finds := func(name string, selector *metav1.LabelSelector) {
			s, err := metav1.LabelSelectorAsSelector(selector)
			require.NoError(t, err)
			require.True(t, s.Matches(gateway), "%s misses the gateways", name)
			require.False(t, s.Matches(migrate), "%s takes the migration for a gateway", name)
		}
		d := one[*appsv1.Deployment](t, m, "Deployment")
		finds("deployment", d.Spec.Selector)
		finds("spread", d.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector)
		finds("disruption budget", one[*policyv1.PodDisruptionBudget](t, m, "PodDisruptionBudget").Spec.Selector)
		finds("network policy", &one[*networkingv1.NetworkPolicy](t, m, "NetworkPolicy").Spec.PodSelector)
		for _, object := range m.byKind["Service"] {
			s := object.(*corev1.Service)
			finds("service "+s.Name, &metav1.LabelSelector{MatchLabels: s.Spec.Selector})
		}
	})
}

func TestEveryPortHasAName(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m manifests) {
		container := one[*appsv1.Deployment](t, m, "Deployment").Spec.Template.Spec.Containers[0]
		open := map[string]bool{}
		for _, p := range container.Ports {
			open[p.Name] = true
		}
		named := func(p intstr.IntOrString) { require.True(t, open[p.String()], "port %s is not open", p.String()) }
		for _, probe := range []*corev1.Probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
			require.NotNil(t, probe)
			named(probe.HTTPGet.Port)
		}
		require.Equal(t, "/readyz", container.ReadinessProbe.HTTPGet.Path)
		require.Equal(t, "/livez", container.LivenessProbe.HTTPGet.Path, "an outage of the database must not restart the gateways")
		for _, object := range m.byKind["Service"] {
			for _, p := range object.(*corev1.Service).Spec.Ports {
				named(p.TargetPort)
			}
		}
		for _, rule := range one[*networkingv1.NetworkPolicy](t, m, "NetworkPolicy").Spec.Ingress {
			for _, p := range rule.Ports {
				named(*p.Port)
			}
		}
	})
}

func TestTheAutoscalerOwnsTheReplicas(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m manifests) {
		d := one[*appsv1.Deployment](t, m, "Deployment")
		h := one[*autoscalingv2.HorizontalPodAutoscaler](t, m, "HorizontalPodAutoscaler")
		require.Nil(t, d.Spec.Replicas)
		require.Equal(t, autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name}, h.Spec.ScaleTargetRef)
		require.Contains(t, d.Spec.Template.Spec.Containers[0].Resources.Requests, corev1.ResourceCPU, "utilization is of the request")
		require.GreaterOrEqual(t, *h.Spec.MinReplicas, int32(2), "one gateway could never be drained")
	})
}

func TestAPodHasTimeToFinish(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m manifests) {
		var settings struct {
			ShutdownGrace string `json:"shutdown_grace"`
		}
		text := one[*corev1.ConfigMap](t, m, "ConfigMap").Data["oncegate.yaml"]
		require.NoError(t, yaml.Unmarshal([]byte(text), &settings))
		grace, err := time.ParseDuration(settings.ShutdownGrace)
		require.NoError(t, err)
		pod := one[*appsv1.Deployment](t, m, "Deployment").Spec.Template.Spec
		require.Greater(t, time.Duration(*pod.TerminationGracePeriodSeconds)*time.Second, grace)
	})
}

func TestSettingsAndSecretsAreMountedAsDirectories(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m manifests) {
		for _, pod := range pods(t, m) {
			mounted := map[string]string{}
			for _, mount := range pod.Containers[0].VolumeMounts {
				require.Empty(t, mount.SubPath, "a single file is never updated")
				require.True(t, mount.ReadOnly)
				mounted[mount.Name] = mount.MountPath
			}
			require.Equal(t, map[string]string{"config": "/etc/oncegate", "secrets": "/run/secrets/oncegate"}, mounted)
			for _, volume := range pod.Volumes {
				if volume.ConfigMap != nil {
					require.Equal(t, one[*corev1.ConfigMap](t, m, "ConfigMap").Name, volume.ConfigMap.Name)
				}
			}
		}
	})
}

func TestPodsAreRestricted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m manifests) {
		for _, pod := range pods(t, m) {
			require.False(t, *pod.AutomountServiceAccountToken)
			require.NotNil(t, pod.EnableServiceLinks)
			require.False(t, *pod.EnableServiceLinks, "variables of other Services would look like settings")
			require.True(t, *pod.SecurityContext.RunAsNonRoot)
			require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type)
			container := pod.Containers[0].SecurityContext
			require.False(t, *container.AllowPrivilegeEscalation)
			require.True(t, *container.ReadOnlyRootFilesystem)
			require.Equal(t, []corev1.Capability{"ALL"}, container.Capabilities.Drop)
		}
	})
}

func TestTheOverlayNamesOneVersion(t *testing.T) {
	t.Parallel()
	for _, pod := range pods(t, build(t, "../overlays/production")) {
		require.Regexp(t, `^ghcr\.io/oncegate/oncegate:\d+\.\d+\.\d+$`, pod.Containers[0].Image)
	}
}

// pods are the pods of the gateways and of the migration.
func pods(t *testing.T, m manifests) []corev1.PodSpec {
	t.Helper()
	return []corev1.PodSpec{
		one[*appsv1.Deployment](t, m, "Deployment").Spec.Template.Spec,
		one[*batchv1.Job](t, m, "Job").Spec.Template.Spec,
	}
}
