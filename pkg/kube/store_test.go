// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

type claims = kube.Store[*corev1.PersistentVolumeClaim]

func version(name, resourceVersion string, mods ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	claim := kit.Claim(name, mods...)
	claim.ResourceVersion = resourceVersion
	return claim
}

func TestAssume(t *testing.T) {
	for name, row := range map[string]struct {
		happens func(s *claims)
		// want is the version that Lookup gives, "" for none.
		want string
	}{
		"nothing known": {func(*claims) {}, ""},
		"own write before the watch": {func(s *claims) {
			s.Show(version("data", "10"))
			s.Assume(version("data", "11"))
		}, "11"},
		"own create before the watch": {func(s *claims) { s.Assume(version("data", "11")) }, "11"},
		"versions are numbers, not text": {func(s *claims) {
			s.Show(version("data", "9"))
			s.Assume(version("data", "10"))
		}, "10"},
		"somebody wrote later": {func(s *claims) {
			s.Assume(version("data", "11"))
			s.Show(version("data", "12"))
		}, "12"},
		"the watch shows an older state": {func(s *claims) {
			s.Assume(version("data", "11"))
			s.Show(version("data", "10"))
		}, "11"},
		"the answer comes after the watch": {func(s *claims) {
			s.Show(version("data", "12"))
			s.Assume(version("data", "11"))
		}, "12"},
		"deleted after the own write": {func(s *claims) {
			s.Assume(version("data", "11"))
			s.Drop(version("data", "12"))
		}, ""},
		"deleted before the answer came": {func(s *claims) {
			s.Show(version("data", "10"))
			s.Drop(version("data", "12"))
			s.Assume(version("data", "11"))
		}, ""},
		"another object shows that the watch has passed the own write": {func(s *claims) {
			s.Assume(version("data", "11"))
			s.Show(version("other", "12"))
		}, ""},
		"the server says that it is gone": {func(s *claims) {
			s.Assume(version("data", "11"))
			s.Forget(kube.Key{Namespace: kit.Namespace, Name: "data"})
		}, ""},
		"a namesake of what went": {func(s *claims) {
			s.Assume(version("data", "20", func(c *corev1.PersistentVolumeClaim) { c.UID = types.UID("new") }))
			s.Drop(version("data", "12"))
		}, "20"},
		"no version at all": {func(s *claims) {
			s.Show(version("data", "12"))
			s.Assume(version("data", ""))
		}, "12"},
		"a version that is no number": {func(s *claims) {
			s.Show(version("data", "12"))
			s.Assume(version("data", "new"))
		}, "12"},
	} {
		t.Run(name, func(t *testing.T) {
			s := kube.NewStore(kube.ClaimIndexes())
			row.happens(s)
			for range 2 { // looking must not change the answer
				got := ""
				if found, ok := s.Lookup(kube.Key{Namespace: kit.Namespace, Name: "data"}); ok {
					got = found.ResourceVersion
				}
				if got != row.want {
					t.Fatalf("got version %q, want %q", got, row.want)
				}
			}
		})
	}
}

// An object that went with our own write is known to have gone until the watch tells so, and no namesake ever is.
func TestAssumeGone(t *testing.T) {
	first := version("data", "10", func(c *corev1.PersistentVolumeClaim) { c.UID = "first" })
	last := version("data", "11", func(c *corev1.PersistentVolumeClaim) { c.UID = "first" })
	next := version("data", "12", func(c *corev1.PersistentVolumeClaim) { c.UID = "next" })
	for name, row := range map[string]struct {
		happens     func(s *claims)
		found, gone bool
	}{
		"before the watch":                  {func(s *claims) { s.Show(first); s.AssumeGone(last) }, true, true},
		"the watch tells":                   {func(s *claims) { s.Show(first); s.AssumeGone(last); s.Drop(last) }, false, false},
		"the watch was faster":              {func(s *claims) { s.Show(first); s.Drop(last); s.AssumeGone(last) }, false, false},
		"a namesake, and its end is missed": {func(s *claims) { s.Show(first); s.AssumeGone(last); s.Show(next) }, true, false},
		"a namesake that was faster":        {func(s *claims) { s.Show(next); s.AssumeGone(last) }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := kube.NewStore[*corev1.PersistentVolumeClaim](nil)
			row.happens(s)
			found, ok := s.Lookup(kube.KeyOf(first))
			if ok != row.found || ok && s.HasGone(found) != row.gone || !ok && s.HasGone(last) {
				t.Errorf("found %v, gone %v", ok, s.HasGone(last))
			}
		})
	}
}

func TestListsShowOwnWrites(t *testing.T) {
	s := kube.NewStore(kube.ClaimIndexes())
	s.Show(version("data", "10", kit.BoundTo("pv")))
	s.Assume(version("data", "11", kit.BoundTo("pv")))
	for name, list := range map[string][]*corev1.PersistentVolumeClaim{"all": s.All(), "by index": s.ByIndex(kube.ByVolume, "pv")} {
		if len(list) != 1 || list[0].ResourceVersion != "11" {
			t.Errorf("%s: %v", name, list)
		}
	}
	if got := s.ByIndex(kube.ByVolume, "other"); len(got) != 0 {
		t.Errorf("found %v", got)
	}
}

// A room's own write, seen through the kit with caches that are behind.
func TestOwnWritesAreSeenBeforeTheWatch(t *testing.T) {
	h := kit.New(t)
	claim := stored(t, h, kit.Claim("data"))
	h.Stores.Hold()
	written, err := kube.Patch(h.Ctx, h.API, claim, label)
	if err != nil {
		t.Fatal(err)
	}
	if found, _ := h.Stores.Claims.Lookup(kube.KeyOf(claim)); found.Labels != nil {
		t.Error("the held cache was not held")
	}
	h.Stores.Claims.Assume(written)
	if found, _ := h.Stores.Claims.Lookup(kube.KeyOf(claim)); found.Labels["a"] != "b" {
		t.Error("the own write is not seen")
	}
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, kube.KeyOf(claim))
	h.Stores.Sync()
	if found, ok := h.Stores.Claims.Lookup(kube.KeyOf(claim)); ok {
		t.Errorf("a deleted object is still there: %v", found)
	}
}
