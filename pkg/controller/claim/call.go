// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// slow is after how long a call is worth an event: most are over before anybody could read it.
const slow = time.Second

// call sends the request of an attempt and does what its answer asks for. The attempt is remembered
// before the call: an answer that never comes leaves it to be found by the next look.
func (c *Controller) call(ctx context.Context, in provision.ClaimInput, attempt *provision.Attempt) (reconcile.Result, error) {
	secrets, err := kube.FetchSecret(ctx, c.Client, secretKey(attempt.Secret))
	if err != nil {
		// A new attempt was not remembered yet: the next look may build it for another node.
		return c.reject(ctx, in.Claim, provision.Reject{Err: err})
	}
	started := c.Clock.Now()
	c.memory.keep(attempt, started)
	volume, err := c.createVolume(marked(ctx, attempt), in.Claim, attempt.WithSecrets(secrets))
	// The call may have taken long: whether anybody still waits is asked now.
	answer := provision.Answer{Attempt: attempt, Now: c.Clock.Now(), Volume: volume, Err: err, Claim: c.lookup(keyOfRef(attempt.Ref))}
	outcome := provision.AfterCreate(answer)
	klog.FromContext(ctx).V(4).Info("driver answered", "outcome", fmt.Sprintf("%T", outcome), "took", c.Clock.Since(started))
	return c.settle(ctx, settlement{claim: answer.Claim, class: in.Class, attempt: attempt, secrets: secrets}, outcome)
}

// settlement is what the outcome of a call concerns.
type settlement struct {
	claim   *corev1.PersistentVolumeClaim
	class   *storagev1.StorageClass
	attempt *provision.Attempt
	secrets map[string]string
}

func (c *Controller) settle(ctx context.Context, s settlement, outcome provision.Outcome) (reconcile.Result, error) {
	uid := s.attempt.Ref.UID
	switch o := outcome.(type) {
	case provision.Provisioned:
		c.memory.keep(o.Attempt, c.Clock.Now())
		return c.save(ctx, o.Attempt)
	case provision.Undo:
		return c.undo(ctx, s, o)
	case provision.KeepTrying:
		c.memory.keep(o.Attempt, c.Clock.Now())
		return c.reject(ctx, s.claim, provision.Reject{Err: o.Err, After: o.After})
	case provision.LetGo:
		c.settled(c.drop(uid))
		return c.letGo(ctx, s.attempt, o)
	case provision.TryLater:
		c.settled(c.drop(uid))
		return c.reject(ctx, s.claim, provision.Reject{Err: o.Err})
	case provision.Infeasible:
		return c.refuse(ctx, s, o.Err)
	case provision.Reschedule:
		c.settled(c.drop(uid))
		return c.reschedule(ctx, s.claim, o.Err)
	}
	return reconcile.Result{}, fmt.Errorf("outcome %T has no effect here", outcome)
}

// createVolume calls the driver, and tells the user that it takes its time if it does.
func (c *Controller) createVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim, request *csi.CreateVolumeRequest) (*csi.Volume, error) {
	if claim == nil {
		return c.Driver.CreateVolume(ctx, request)
	}
	timer := c.Clock.NewTimer(slow)
	defer timer.Stop()
	answered, told := make(chan struct{}), make(chan struct{})
	tell := func() {
		c.Recorder.Normal(claim, wellknown.ReasonProvisioning, fmt.Sprintf("External provisioner is provisioning volume for claim %q", claim.Namespace+"/"+claim.Name))
	}
	go func() {
		defer close(told)
		select {
		case <-timer.C():
			tell()
		case <-answered:
			// Both may be ready: a call that took long is told whichever is seen first.
			select {
			case <-timer.C():
				tell()
			default:
			}
		}
	}()
	volume, err := c.Driver.CreateVolume(ctx, request)
	close(answered)
	<-told
	return volume, err
}

// refuse remembers that the same request would fail again.
func (c *Controller) refuse(ctx context.Context, s settlement, cause error) (reconcile.Result, error) {
	c.settled(c.drop(s.attempt.Ref.UID))
	if s.claim == nil {
		return reconcile.Result{}, nil // nobody is left to change the request or to hear of it
	}
	refusal := &provision.Refusal{Until: c.Clock.Now().Add(c.RetryMax), Claim: s.claim}
	if s.class != nil {
		refusal.Class = s.class.UID
	}
	c.memory.refuse(s.claim.UID, refusal)
	c.metrics.failed(s.claim)
	c.tell(ctx, s.claim, cause, "Volume provisioning failed with infeasible error. Retries will be delayed. "+provision.Sentence(cause))
	return reconcile.Result{}, fault.RetryAfter(cause, c.RetryMax)
}

// letGo ends an attempt whose claim is gone and whose outcome cannot be found out. What may be left at
// the driver has this name; the event outlives the claim.
func (c *Controller) letGo(ctx context.Context, attempt *provision.Attempt, o provision.LetGo) (reconcile.Result, error) {
	err := fmt.Errorf("the claim is gone and the driver cannot say whether volume %s was made; look for it there: %w", o.Name, o.Err)
	c.metrics.letGo.Inc()
	if ctx.Err() == nil {
		c.Recorder.Warning(ghost(attempt.Ref), wellknown.ReasonProvisioningFailed, err.Error())
	}
	return reconcile.Result{}, fault.Terminal(err)
}

// ghost is a claim that is gone, as far as events need it.
func ghost(ref *corev1.ObjectReference) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, ResourceVersion: ref.ResourceVersion,
	}}
}

func secretKey(ref *corev1.SecretReference) kube.Key {
	if ref == nil {
		return kube.Key{}
	}
	return kube.Key{Namespace: ref.Namespace, Name: ref.Name}
}

func addSnapshotFinalizer(o *snapv1.VolumeSnapshot) {
	kube.AddFinalizer(o, wellknown.FinalizerSnapshotAsSource)
}
