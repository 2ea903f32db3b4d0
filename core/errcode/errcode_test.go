package errcode

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestNamesAreThoseOfTheReleasedClients compares with what the released 0.3.14 client prints for
// every number it knows.
func TestNamesAreThoseOfTheReleasedClients(t *testing.T) {
	f, err := os.Open("../../testdata/wire/codes.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	known := map[Code]string{OK: "OK"}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		number, name, ok := strings.Cut(lines.Text(), ": ")
		n, err := strconv.Atoi(number)
		if !ok || err != nil {
			t.Fatalf("line %q: %v", lines.Text(), err)
		}
		known[Code(n)] = name
	}
	if len(known) < 70 {
		t.Fatalf("only %d codes in the file", len(known))
	}
	for code := Code(1); code > -2100; code-- {
		want, ok := known[code]
		if !ok {
			want = "UNKNOWN_ERROR"
		}
		if got := code.Name(); got != want {
			t.Errorf("%d is called %s, clients call it %s", code, got, want)
		}
	}
	if ReplicaNotInLocalMemory.Name() != "UNKNOWN_ERROR" {
		t.Error("-713 has a name here and none in the released clients")
	}
}

func TestACodeIsAnError(t *testing.T) {
	if OK.Err() != nil {
		t.Error("OK is an error")
	}
	err := fmt.Errorf("tenant %q: %w", "a", TenantNotEmpty)
	var code Code
	if !errors.Is(err, TenantNotEmpty) || !errors.As(err, &code) || code != -1702 {
		t.Errorf("%v does not lead back to its code", err)
	}
	if got := ObjectNotFound.Error(); got != "OBJECT_NOT_FOUND (-704)" {
		t.Errorf("reads %q", got)
	}
}
