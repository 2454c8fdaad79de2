// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
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
	"github.com/csi-tandem/csi-tandem/pkg/throttle"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// slow is after how long a call is worth an event: most are over before anybody could read it.
const slow = time.Second

// call sends the request of an attempt and does what its answer asks for. The attempt is remembered
// before the call: an answer that never comes leaves it to be found by the next look.
func (c *Controller) call(ctx context.Context, in provision.ClaimInput, attempt *provision.Attempt) (reconcile.Result, error) {
	secrets, err := kube.FetchSecret(ctx, c.Client, secretKey(attempt.Secret))
	if err != nil {
		return c.lackSecret(ctx, in, attempt, err)
	}
	return c.send(ctx, in, attempt.Equipped(), secrets)
}

// lackSecret decides about an attempt whose secret could not be read. Only when it certainly does not exist,
// and nobody is left who could make it again, one call is ever made without.
func (c *Controller) lackSecret(ctx context.Context, in provision.ClaimInput, attempt *provision.Attempt, cause error) (reconcile.Result, error) {
	switch {
	case !attempt.Open:
		// A new attempt was not remembered yet: the next look may build it for another node.
		return c.reject(ctx, in.Claim, provision.Reject{Err: provision.LackSecret(in, cause)})
	case !isGoneForGood(in, cause):
		return c.rejectOpen(ctx, in.Claim, attempt, provision.LackSecret(in, cause))
	}
	outcome := provision.AfterNoSecret(provision.Answer{Attempt: attempt, Now: c.Clock.Now(), Err: cause, Claim: in.Claim})
	if without, ok := outcome.(provision.GoWithout); ok {
		if without.Attempt.Undoing != nil {
			return c.undo(ctx, settlement{claim: in.Claim, class: in.Class, attempt: without.Attempt}, without.Attempt.Resumed())
		}
		return c.send(ctx, in, without.Attempt, nil)
	}
	return c.settle(ctx, settlement{claim: in.Claim, class: in.Class, attempt: attempt}, outcome)
}

// send makes the call, and sees to what follows.
func (c *Controller) send(ctx context.Context, in provision.ClaimInput, attempt *provision.Attempt, secrets map[string]string) (reconcile.Result, error) {
	if !c.memory.beginWriting(attempt.Ref.UID) {
		return reconcile.Result{After: soon}, nil // a PersistentVolume of the claim is at its end this very moment, or an attempt was found
	}
	started, err := c.commit(ctx, attempt)
	if err != nil {
		return c.unwritten(ctx, in.Claim, attempt, err)
	}
	isUnderstood := false
	defer func() {
		if !isUnderstood { // a fault of this program, after which the others go on: what the driver has done is as unknown as after a kill
			c.memory.keep(attempt.Unanswered(), started)
		}
	}()
	volume, err := c.createVolume(c.whileWanted(marked(ctx, attempt), attempt), in.Claim, attempt.WithSecrets(secrets))
	if kept := c.memory.join(attempt.Ref.UID, started); kept != nil {
		if kept.Undoing != nil {
			isUnderstood = true
			return reconcile.Result{After: soon}, nil // found on the record meanwhile: it comes first, and the driver answers again
		}
		attempt = kept // what was found on the record meanwhile stands beside it
	}
	if errors.Is(err, errUnwanted) {
		isUnderstood = true
		if !attempt.Open { // else the very same call of an earlier process was found meanwhile, and may have made the volume
			c.leave(attempt, attempt.Prior)
		}
		return reconcile.Result{After: soon}, nil
	}
	if err != nil && c.Failed != nil {
		c.Failed(attempt.Volume.Spec.StorageClassName, attempt.Node)
	}
	// The call may have taken long: whether anybody still waits is asked now.
	answer := provision.Answer{Attempt: attempt, Now: c.Clock.Now(), Volume: volume, Err: err, Claim: c.lookup(keyOfRef(attempt.Ref))}
	if claim := answer.Claim; claim != nil {
		answer.Class, _ = c.Classes.Lookup(kube.Key{Name: provision.ClassName(claim)})
		answer.Topology = c.wholeTopology()
	}
	outcome := provision.AfterCreate(answer)
	isUnderstood = true
	klog.FromContext(ctx).V(4).Info("driver answered", "outcome", fmt.Sprintf("%T", outcome), "took", c.Clock.Since(started))
	return c.settle(ctx, settlement{claim: answer.Claim, class: in.Class, attempt: attempt, secrets: secrets}, outcome)
}

// commit puts an attempt on record, and then in memory: what is remembered and not on record could be called for by another way to here.
func (c *Controller) commit(ctx context.Context, attempt *provision.Attempt) (started time.Time, err error) {
	defer c.memory.endWriting(attempt.Ref.UID)
	if err := c.write(ctx, attempt); err != nil {
		return started, err
	}
	started = c.Clock.Now()
	c.memory.keep(attempt, started)
	return started, nil
}

// wholeTopology tells which nodes there are, nil where it knows one only.
func (c *Controller) wholeTopology() *topology.Index {
	if c.config.Node != "" {
		return nil
	}
	return c.Topology
}

// settlement is what the outcome of a call concerns.
type settlement struct {
	claim   *corev1.PersistentVolumeClaim
	class   *storagev1.StorageClass
	attempt *provision.Attempt
	secrets map[string]string
}

func (c *Controller) settle(ctx context.Context, s settlement, outcome provision.Outcome) (reconcile.Result, error) {
	switch o := outcome.(type) {
	case provision.Provisioned:
		c.memory.keep(o.Attempt, c.Clock.Now())
		if step, ok := provision.NextClaimStep(c.gather(keyOfRef(o.Attempt.Ref))).(provision.Discard); ok {
			return c.discard(ctx, step.Attempt) // during the call the claim has gone to another node
		}
		return c.save(ctx, o.Attempt)
	case provision.Undo:
		c.memory.keep(o.Attempt, c.Clock.Now()) // before anything that may break off: there is a volume
		return c.undo(ctx, s, o)
	case provision.KeepTrying:
		return c.keepTrying(ctx, s, o)
	case provision.LetGo:
		c.settled(c.letGo(s.attempt.Ref.UID))
		c.metrics.letGo.Inc()
		// Nothing changes any more that could end the wait of a key whose claim is gone: one more look does.
		c.queue.Add(keyOfRef(s.attempt.Ref))
		return reconcile.Result{}, fault.Terminal(c.tellLost(ctx, s.attempt, "look for it there", o.Err))
	case provision.TryLater:
		c.leave(s.attempt, o.Left)
		return c.reject(ctx, s.claim, provision.Reject{Err: o.Err})
	case provision.Infeasible:
		return c.refuse(ctx, s, o)
	case provision.Reschedule:
		c.leave(s.attempt, o.Left)
		return c.reschedule(ctx, s.claim, o.Err)
	case provision.GoWithout:
		// Done before the call, which it is about.
	}
	return reconcile.Result{}, fmt.Errorf("outcome %T has no effect here", outcome)
}

func (c *Controller) keepTrying(ctx context.Context, s settlement, o provision.KeepTrying) (reconcile.Result, error) {
	c.memory.keep(o.Attempt, c.Clock.Now())
	if o.Attempt.IsFreed() && !s.attempt.IsFreed() {
		c.settled(o.Attempt)
	}
	if o.Tell {
		c.tellLost(ctx, s.attempt, "still trying", o.Err)
	}
	return c.reject(ctx, s.claim, provision.Reject{Err: o.Err, After: o.After})
}

// errUnwanted is no failure: nobody waits for the volume any more, and it was never asked for.
var errUnwanted = errors.New("the claim is gone, and nothing was asked for yet")

// whileWanted looks at the claim once more when the turn of a first call has come: what would be made for a claim
// that went meanwhile is only to be removed again. The cache is enough, since it is no harm to be late.
func (c *Controller) whileWanted(ctx context.Context, attempt *provision.Attempt) context.Context {
	if attempt.Open {
		return ctx // only the call can tell what became of the one before it
	}
	return throttle.WithGlance(ctx, func(context.Context) error {
		if provision.IsAbandoned(c.lookup(keyOfRef(attempt.Ref))) {
			return errUnwanted
		}
		return nil
	})
}

// leave ends an attempt, and goes back to the one before it that is still open, if there is one. That one was not answered, and has no handle.
func (c *Controller) leave(attempt, left *provision.Attempt) {
	if left != nil {
		c.handles.free(attempt.Ref.UID)
		c.memory.keep(left, c.Clock.Now())
		return
	}
	c.settled(c.drop(attempt.Ref.UID))
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
	defer func() { // also when the call ends by a fault of this program: nobody else ends the wait
		close(answered)
		<-told
	}()
	return c.Driver.CreateVolume(ctx, request)
}

// refuse remembers that the same request would fail again.
func (c *Controller) refuse(ctx context.Context, s settlement, o provision.Infeasible) (reconcile.Result, error) {
	cause := o.Err
	c.leave(s.attempt, o.Left)
	switch {
	case s.claim == nil && o.Left != nil:
		return reconcile.Result{}, cause
	case s.claim == nil:
		return reconcile.Result{}, nil // nobody is left to change the request or to hear of it
	}
	refusal := &provision.Refusal{Until: c.Clock.Now().Add(c.RetryMax), Claim: s.claim}
	if s.class != nil {
		refusal.Class = s.class.UID
	}
	c.memory.refuse(s.claim.UID, refusal)
	c.metrics.failed(s.claim)
	c.tell(ctx, s.claim, cause, "Volume provisioning failed with infeasible error. Retries will be delayed. "+fault.Sentence(cause))
	return reconcile.Result{}, fault.RetryAfter(cause, c.RetryMax)
}

// tellLost tells of an attempt whose claim is gone and whose outcome is not known, and of what is done
// about it. What may be left at the driver has this name; the event outlives the claim.
func (c *Controller) tellLost(ctx context.Context, attempt *provision.Attempt, what string, cause error) error {
	err := fmt.Errorf("the claim is gone and the driver cannot say whether volume %s was made; %s: %w", attempt.Name(), what, cause)
	if ctx.Err() == nil {
		c.Recorder.Warning(ghost(attempt.Ref), wellknown.ReasonProvisioningFailed, fault.Sentence(err))
	}
	return err
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
