//go:build requests

package scenario

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestRequests is the program of this SDK for tests/sdk/requests, told what to do line by line.
func TestRequests(t *testing.T) {
	ctx, client := begin(t), connect(t, nil)
	container := makeContainer(t, makeDatabase(t, client), "items", 24000, nil)
	_, err := container.CreateItem(ctx, key("a"), bytesOf(t, item{"id": "first", "pk": "a"}), nil)
	must(t, err)
	_, err = container.ReadItem(ctx, key("a"), "first", nil)
	must(t, err)
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		isReads := strings.TrimSpace(lines.Text()) == "reads"
		for number := range 100 {
			if isReads {
				_, err = container.ReadItem(ctx, key("a"), "first", nil)
			} else {
				pk := fmt.Sprintf("p%d", number%10)
				_, err = container.CreateItem(ctx, key(pk), bytesOf(t, item{"id": fmt.Sprintf("i%d", number), "pk": pk}), nil)
			}
			must(t, err)
		}
		fmt.Println("done")
	}
}
