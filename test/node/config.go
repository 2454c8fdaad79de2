// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"path/filepath"
	"strings"
)

// SandboxImage is the one image there is, under the name by which manifests ask for something that only stays; Shell is
// another name of it, for pods that run commands.
const (
	SandboxImage = "registry.k8s.io/pause:3.10"
	Shell        = "localhost/csi-tandem/busybox:1"
)

// files are the configuration of a node.
func (w *worker) files(port int) map[string]string {
	fill := func(text string) string {
		return strings.NewReplacer(
			"{dir}", w.dir, "{name}", w.name, "{socket}", w.socket(), "{tools}", w.machine.tools.dir,
			"{sandbox}", SandboxImage, "{port}", fmt.Sprint(port),
		).Replace(strings.TrimLeft(text, "\n"))
	}
	return map[string]string{
		"containerd.toml":                        fill(containerdToml),
		"kubelet.yaml":                           fill(kubeletYaml),
		filepath.Join("cni", "10-none.conflist"): fill(cniConflist),
	}
}

// Raising the priority of a process against the out-of-memory killer is a right that not every root has.
const containerdToml = `
version = 3
root = '{dir}/root'
state = '{dir}/state'
disabled_plugins = [
  'io.containerd.nri.v1.nri', 'io.containerd.internal.v1.opt', 'io.containerd.tracing.processor.v1.otlp', 'io.containerd.internal.v1.tracing',
  'io.containerd.snapshotter.v1.blockfile', 'io.containerd.snapshotter.v1.erofs', 'io.containerd.differ.v1.erofs',
]

[grpc]
  address = '{socket}'

[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'overlayfs'
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = '{sandbox}'

[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = 'runc'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = 'io.containerd.runc.v2'
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        BinaryName = '{tools}/runc'
        SystemdCgroup = false
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['{tools}']
    conf_dir = '{dir}/cni'
    use_internal_loopback = true
`

const cniConflist = `
{"cniVersion": "1.0.0", "name": "none", "plugins": [{"type": "machine"}]}
`

// A node that is silent is to be known as such in seconds. The tables of the network are those of the whole machine, so the kubelet keeps its hands off them. Nothing is evicted, and no image is collected, for
// a disk that somebody else fills.
const kubeletYaml = `
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: {port}
healthzPort: 0
readOnlyPort: 0
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: false}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix://{socket}
cgroupDriver: cgroupfs
cgroupRoot: /{name}
cgroupsPerQOS: true
enforceNodeAllocatable: [none]
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
localStorageCapacityIsolation: false
oomScoreAdj: 0
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard:
  memory.available: 1Mi
  nodefs.available: 1Mi
  imagefs.available: 1Mi
  nodefs.inodesFree: 0%
  imagefs.inodesFree: 0%
podLogsDir: {dir}/logs
volumePluginDir: {dir}/plugins
resolvConf: ""
syncFrequency: 10s
volumeStatsAggPeriod: 5s
nodeStatusUpdateFrequency: 5s
nodeLeaseDurationSeconds: 10
shutdownGracePeriod: 0s
`
