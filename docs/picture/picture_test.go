// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the pictures instead of comparing them")

// TestPictures: each picture is what its text says, and each has one. Catches a text that was changed without its picture, and
// a picture that was drawn by hand.
func TestPictures(t *testing.T) {
	texts, err := filepath.Glob("*.txt")
	if err != nil || len(texts) < 9 {
		t.Fatalf("found %d texts: %v", len(texts), err)
	}
	drawn := map[string]bool{}
	for _, text := range texts {
		src, err := os.ReadFile(text)
		if err != nil {
			t.Fatal(err)
		}
		svg, err := Draw(string(src))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		wellFormed(t, text, svg)
		file := strings.TrimSuffix(text, ".txt") + ".svg"
		drawn[file] = true
		if *update {
			if err := os.WriteFile(file, []byte(svg), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if found, err := os.ReadFile(file); err != nil || string(found) != svg {
			t.Errorf("%s is not what %s says: go test ./docs/picture -update (%v)", file, text, err)
		}
	}
	pictures, err := filepath.Glob("*.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range pictures {
		if !drawn[file] {
			t.Errorf("%s has no text", file)
		}
	}
}

func wellFormed(t *testing.T, name, svg string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Errorf("%s gives no XML: %v", name, err)
			return
		}
	}
}

func TestDrawIsAlwaysTheSame(t *testing.T) {
	text := "title A <walk>\nlane a One & all\nlane b Two\na -> b: asks\nb .> a: answers\na -> a: thinks\nnote a,b: both | wait\n== later\nnote b: ends\n"
	first, err := Draw(text)
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, "the walk", first)
	for range 20 {
		if again, _ := Draw(text); again != first {
			t.Fatal("two pictures of one text differ")
		}
	}
	for _, want := range []string{"<title>A &lt;walk&gt;</title>", "One &amp; all to Two: asks. Two to One &amp; all: answers", `class="answer"`, ">wait<", ">later<"} {
		if !strings.Contains(first, want) {
			t.Errorf("%q is missing in\n%s", want, first)
		}
	}
}

func TestWhatIsNotUnderstood(t *testing.T) {
	for text, want := range map[string]string{
		"lane a A": "no title", "title T": "nothing to draw", "title T\nlane a A\nbox b at 0,0: B": "do not go together",
		"title T\nlane a A\n\na -> b: x": "line 4: there is no b", "title T\nlane a A\nhello": `line 3: "hello" is not understood`,
		"title T\nlane a A\nlane a B": "line 3: a is there already", "title T\nlane a A\nlane b B\nnote b,a: x": "line 4: there are no lanes from b to a",
		"title T\nbox a at 0,0: A\nbox a at 1,0: B": "line 3: a is there already",
	} {
		if _, err := Draw(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestTextsFit: no line of a picture is wider than what it stands in, but for words that cannot be broken.
func TestTextsFit(t *testing.T) {
	for _, width := range []int{60, 120, 400} {
		for _, line := range wrap("The provisioner writes the request down before it asks the driver | and only then asks", width) {
			if widthOf(line) > width && strings.Contains(line, " ") {
				t.Errorf("%q is %d wide, and there are %d", line, widthOf(line), width)
			}
		}
	}
}
