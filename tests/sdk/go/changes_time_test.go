package scenario

import (
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestTheChangeFeedFromATime(t *testing.T) {
	ctx, client := begin(t), connect(t, nil)
	container := makeContainer(t, makeDatabase(t, client), "changes", 400, nil)
	_, err := container.CreateItem(ctx, key("a"), bytesOf(t, item{"id": "old", "pk": "a"}), nil)
	must(t, err)
	time.Sleep(2100 * time.Millisecond)
	start := time.Now()
	time.Sleep(2100 * time.Millisecond)
	_, err = container.CreateItem(ctx, key("a"), bytesOf(t, item{"id": "new", "pk": "a"}), nil)
	must(t, err)
	ids, _ := follow(t, ctx, container, azcosmos.ChangeFeedOptions{FeedRange: &whole, StartFrom: &start})
	equal(t, fmt.Sprint(ids), "[new]")
}
