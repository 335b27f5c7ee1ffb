package scenario

import (
	"context"
	"fmt"
	"sort"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// whole is the range of all keys.
var whole = azcosmos.FeedRange{MinInclusive: "", MaxExclusive: "FF"}

// follow reads a feed until nothing is new, and returns the ids with the continuation.
func follow(
	t *testing.T,
	ctx context.Context,
	container *azcosmos.ContainerClient,
	options azcosmos.ChangeFeedOptions,
) (ids []string, continuation string) {
	t.Helper()
	quiet := 0
	for range 1000 {
		page, err := container.ReadChangeFeed(ctx, &options)
		must(t, err)
		for _, change := range page.Items {
			ids = append(ids, itemOf(t, change)["id"].(string))
		}
		if page.ContinuationToken != "" {
			continuation = page.ContinuationToken
			options.Continuation = &continuation
		}
		// A call asks its ranges in turn and may find nothing in one of them.
		quiet++
		if page.Count > 0 {
			quiet = 0
		}
		if quiet > 4 {
			sort.Strings(ids)
			return ids, continuation
		}
	}
	t.Fatal("a feed without end")
	return nil, ""
}

func TestTheChangeFeed(t *testing.T) {
	ctx, client := begin(t), connect(t, nil)
	container := makeContainer(t, makeDatabase(t, client), "changes", 24000, nil)
	var wanted []string
	for n := range 24 {
		pk, id := fmt.Sprintf("p%d", n%5), fmt.Sprintf("i%02d", n)
		_, err := container.CreateItem(ctx, key(pk), bytesOf(t, item{"id": id, "pk": pk}), nil)
		must(t, err)
		wanted = append(wanted, id)
	}
	all, continuation := follow(t, ctx, container, azcosmos.ChangeFeedOptions{FeedRange: &whole, MaxItemCount: 3})
	equal(t, fmt.Sprint(all), fmt.Sprint(wanted))
	_, err := container.UpsertItem(ctx, key("p3"), bytesOf(t, item{"id": "i03", "pk": "p3", "n": 1}), nil)
	must(t, err)
	_, err = container.DeleteItem(ctx, key("p4"), "i04", nil)
	must(t, err)
	later, _ := follow(t, ctx, container, azcosmos.ChangeFeedOptions{Continuation: &continuation})
	equal(t, fmt.Sprint(later), "[i03]")

	ranges, err := container.ReadFeedRanges(ctx, nil)
	must(t, err)
	equal(t, len(ranges), 4)
	var found []string
	for place := range ranges {
		ids, _ := follow(t, ctx, container, azcosmos.ChangeFeedOptions{FeedRange: &ranges[place]})
		found = append(found, ids...)
	}
	equal(t, len(found), 23)
}

func TestTheChangeFeedOfOneKey(t *testing.T) {
	ctx, client := begin(t), connect(t, nil)
	container := makeContainer(t, makeDatabase(t, client), "changes", 400, nil)
	for n := range 10 {
		pk := fmt.Sprintf("p%d", n%5)
		_, err := container.CreateItem(ctx, key(pk), bytesOf(t, item{"id": fmt.Sprintf("i%d", n), "pk": pk}), nil)
		must(t, err)
	}
	place := key("p2")
	ids, _ := follow(t, ctx, container, azcosmos.ChangeFeedOptions{FeedRange: &whole, PartitionKey: &place})
	equal(t, fmt.Sprint(ids), "[i2 i7]")
}
