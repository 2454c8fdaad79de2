// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/test/stage"
)

// capacityClasses is how many classes capacity is published for.
const capacityClasses = 2

// never is a poll interval that no run sees pass.
const never = "24h"

// capacityRun is one run of the mode capacity: findings are counts, with what is enough beside them.
type capacityRun struct {
	*bench
	table table
	over  []string
	// keys is how many objects there are to be.
	keys   int
	member *member
}

// runCapacity publishes capacity for many nodes, and looks at what that costs at first, when nothing changes, when one node
// comes and goes, and while the driver is away.
func runCapacity(ctx context.Context, b *bench) error {
	r := &capacityRun{bench: b, table: table{head: []string{"", "found", "enough"}}, keys: b.o.nodes * capacityClasses}
	if err := r.fillNodes(ctx); err != nil {
		return err
	}
	for i := range capacityClasses {
		class := &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("capacity-", i)}, Provisioner: driverName,
			Parameters: map[string]string{"tier": fmt.Sprint(i)}, VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
		}
		if _, err := b.stage.Kube.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context) error{r.publish, r.restart, r.nodeMore, r.nodeLess, r.polls, r.outageOfDriver} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("\n%s, %s: capacity of %d segments × %d classes\n\n", b.o.label, machine(), b.o.nodes, capacityClasses)
	r.table.text(os.Stdout)
	if err := b.o.keep("capacity", &r.table, fmt.Sprintf("%d segments × %d classes.", b.o.nodes, capacityClasses)); err != nil {
		return err
	}
	if len(r.over) > 0 {
		return fmt.Errorf("more than is enough: %s", strings.Join(r.over, "; "))
	}
	return nil
}

// found adds a figure that nothing is expected of.
func (r *capacityRun) found(what, figure string) { r.table.add(what, figure, "") }

// atMost adds a count with what is enough.
func (r *capacityRun) atMost(what string, count, enough int) {
	r.table.add(what, fmt.Sprint(count), fmt.Sprint(enough))
	if count > enough {
		r.over = append(r.over, fmt.Sprintf("%s: %d instead of %d", what, count, enough))
	}
}

// start runs the provisioner with one poll interval; the one before ends.
func (r *capacityRun) start(ctx context.Context, flags ...string) error {
	if r.member != nil {
		r.dismiss(r.member)
	}
	var err error
	r.driver.forget()
	r.member, err = r.hire(ctx, stage.Provisioner, append([]string{"--enable-capacity", "--capacity-ownerref-level=-1"}, flags...)...)
	return err
}

// publish measures from the start of the process until every object is there.
func (r *capacityRun) publish(ctx context.Context) error {
	l, err := r.newLedger()
	if err != nil {
		return err
	}
	r.say("publishing %d objects", r.keys)
	began := time.Now()
	if err := r.start(ctx); err != nil {
		return err
	}
	first, err := r.awaitObjects(ctx, func(count int) bool { return count > 0 })
	if err != nil {
		return err
	}
	last, err := r.awaitObjects(ctx, func(count int) bool { return count >= r.keys })
	if err != nil {
		return err
	}
	calls, most := r.driver.count("GetCapacity")
	r.found("objects published, with no flag but --enable-capacity", fmt.Sprint(r.keys))
	r.found("from the start to the first, and to all of them", fmt.Sprintf("%s, %s", seconds(first.Sub(began).Seconds()), seconds(last.Sub(began).Seconds())))
	r.found("objects in a second", fmt.Sprintf("%.0f", float64(r.keys)/last.Sub(first).Seconds()))
	r.found("GetCapacity calls by then, and of the segment and class with most", fmt.Sprintf("%d, %d", calls, most))
	if err := r.settle(ctx, l); err != nil {
		return err
	}
	r.atMost("writes", r.writes(l), r.keys)
	r.found("memory: resident, peak", r.memory())
	return nil
}

// restart shows that what is there is taken over.
func (r *capacityRun) restart(ctx context.Context) error {
	l, err := r.newLedger()
	if err != nil {
		return err
	}
	r.say("starting again")
	if err := r.start(ctx, "--capacity-poll-interval="+never); err != nil {
		return err
	}
	if err := r.awaitCalls(ctx, r.keys); err != nil {
		return err
	}
	if err := r.settle(ctx, l); err != nil {
		return err
	}
	calls, _ := r.driver.count("GetCapacity")
	r.atMost("another start: GetCapacity calls", calls, r.keys)
	r.atMost("another start: writes", r.writes(l), 0)
	return nil
}

func (r *capacityRun) nodeMore(ctx context.Context) error {
	return r.change(ctx, "one node more", r.keys+capacityClasses, func() error { return r.addNode(ctx, nodeName(r.o.nodes)) })
}

func (r *capacityRun) nodeLess(ctx context.Context) error {
	return r.change(ctx, "one node less", r.keys, func() error { return r.stage.Cluster.RemoveNode(ctx, nodeName(r.o.nodes)) })
}

// change does something to one node, which should cost what that node has and nothing else.
func (r *capacityRun) change(ctx context.Context, what string, objects int, do func() error) error {
	l, err := r.newLedger()
	if err != nil {
		return err
	}
	r.say("%s", what)
	r.driver.forget()
	began := time.Now()
	if err := do(); err != nil {
		return err
	}
	done, err := r.awaitObjects(ctx, func(count int) bool { return count == objects })
	if err != nil {
		return err
	}
	if err := r.settle(ctx, l); err != nil {
		return err
	}
	calls, _ := r.driver.count("GetCapacity")
	r.found(what+": until the objects are so", seconds(done.Sub(began).Seconds()))
	r.atMost(what+": GetCapacity calls", calls, capacityClasses)
	r.atMost(what+": writes", r.writes(l), capacityClasses)
	return nil
}

// polls counts over two intervals in which nothing changes.
func (r *capacityRun) polls(ctx context.Context) error {
	if err := r.start(ctx, "--capacity-poll-interval="+r.o.poll.String()); err != nil {
		return err
	}
	if err := r.awaitCalls(ctx, r.keys); err != nil {
		return err
	}
	const intervals = 2
	l, err := r.newLedger()
	if err != nil {
		return err
	}
	r.say("counting over %d polls of %v", intervals, r.o.poll)
	r.driver.forget()
	if !rest(ctx, intervals*r.o.poll) {
		return context.Cause(ctx)
	}
	calls, most := r.driver.count("GetCapacity")
	if err := l.read(); err != nil {
		return err
	}
	r.atMost(fmt.Sprintf("%d polls: GetCapacity calls", intervals), calls, intervals*r.keys)
	// The window begins and ends anywhere in an interval, and so one more may fall into it.
	r.atMost(fmt.Sprintf("%d polls: calls of the segment and class with most", intervals), most, intervals+1)
	r.atMost(fmt.Sprintf("%d polls: writes of any kind", intervals), r.writes(l)+r.others(l), 0)
	r.audited = l.at
	return nil
}

// outageOfDriver lets the driver fail over several polls and looks at how much the process piles up.
func (r *capacityRun) outageOfDriver(ctx context.Context) error {
	l, err := r.newLedger()
	if err != nil {
		return err
	}
	r.say("the driver is away for %v", r.o.outage)
	r.driver.forget()
	r.driver.be(0, codes.Unavailable)
	deepest := 0
	for end := time.Now().Add(r.o.outage); time.Now().Before(end); {
		depth, err := r.queued(ctx)
		if err != nil {
			return err
		}
		deepest = max(deepest, depth)
		if !rest(ctx, 500*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	calls, _ := r.driver.count("GetCapacity")
	r.driver.forget()
	r.driver.be(0, codes.OK)
	began := time.Now()
	if err := r.awaitEach(ctx, r.keys); err != nil {
		return err
	}
	r.found(fmt.Sprintf("outage of %v: failing calls", r.o.outage), fmt.Sprint(calls))
	r.atMost("outage: longest queue", deepest, r.keys)
	r.found("outage: until everything was asked again", seconds(time.Since(began).Seconds()))
	if err := l.read(); err != nil {
		return err
	}
	r.atMost("outage: writes", r.writes(l), 0)
	r.found("outage: other writes, such as events", fmt.Sprint(r.others(l)))
	r.found("outage: memory: resident, peak", r.memory())
	return nil
}

// writes are those of capacity objects. Whatever else a process writes when it begins to work is not what is looked at.
func (r *capacityRun) writes(l *ledger) int {
	sum := 0
	for what, n := range l.of(r.member.user).Writes {
		if strings.Contains(what, "csistoragecapacities") {
			sum += n
		}
	}
	return sum
}

// others are all other writes, events among them.
func (r *capacityRun) others(l *ledger) int { return total(l.of(r.member.user).Writes) - r.writes(l) }

func (r *capacityRun) memory() string {
	u := usageOf(r.member.process.ID())
	return fmt.Sprintf("%.0fMi, %.0fMi", mebibytes(u.resident), mebibytes(u.peak))
}

// queued is the length of the queue for capacity, as the process tells it.
func (r *capacityRun) queued(ctx context.Context) (int, error) {
	metrics, err := r.member.fetch(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	return queueLength(string(metrics))
}

// queueLength adds up the queues whose names speak of capacity.
func queueLength(metrics string) (int, error) {
	sum, found := 0, false
	for line := range strings.Lines(metrics) {
		rest, isDepth := strings.CutPrefix(line, "workqueue_depth{")
		labels, value, complete := strings.Cut(rest, "} ")
		if !isDepth || !complete || !strings.Contains(labels, "apacity") {
			continue
		}
		depth, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return 0, fmt.Errorf("reading the length of a queue: %w", err)
		}
		sum, found = sum+int(depth), true
	}
	if !found {
		return 0, fmt.Errorf("no queue speaks of capacity in the metrics")
	}
	return sum, nil
}
