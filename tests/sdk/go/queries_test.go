package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const stored = 60

func fill(t *testing.T, ctx context.Context, container *azcosmos.ContainerClient) {
	t.Helper()
	for n := range stored {
		pk := fmt.Sprintf("p%d", n%6)
		_, err := container.CreateItem(ctx, key(pk),
			bytesOf(t, item{"id": fmt.Sprintf("i%02d", n), "pk": pk, "n": n, "even": n%2 == 0}), nil)
		must(t, err)
	}
}

// drain reads all pages of a query; after each page it goes on with a new pager, from the continuation.
func drain(
	t *testing.T,
	ctx context.Context,
	container *azcosmos.ContainerClient,
	query string,
	place azcosmos.PartitionKey,
	options azcosmos.QueryOptions,
) (rows []string, pages int) {
	t.Helper()
	for {
		page, err := container.NewQueryItemsPager(query, place, &options).NextPage(ctx)
		must(t, err)
		pages++
		if options.PageSizeHint > 0 && len(page.Items) > int(options.PageSizeHint) {
			t.Fatalf("a page of %d", len(page.Items))
		}
		for _, row := range page.Items {
			rows = append(rows, string(row))
		}
		if page.ContinuationToken == nil || *page.ContinuationToken == "" {
			return rows, pages
		}
		if pages > 10*stored {
			t.Fatal("pages without end")
		}
		options.ContinuationToken = page.ContinuationToken
	}
}

func TestQueriesOfOnePartition(t *testing.T) {
	ctx, client := begin(t), connect(t, nil)
	container := makeContainer(t, makeDatabase(t, client), "queries", 24000, nil)
	fill(t, ctx, container)
	ordered, pages := drain(t, ctx, container, "SELECT VALUE c.n FROM c WHERE c.n >= @least ORDER BY c.n DESC",
		key("p1"), azcosmos.QueryOptions{
			PageSizeHint:    3,
			QueryParameters: []azcosmos.QueryParameter{{Name: "@least", Value: 10}},
		})
	equal(t, fmt.Sprint(ordered), "[55 49 43 37 31 25 19 13]")
	if pages < 3 {
		t.Fatalf("%d pages", pages)
	}
	for query, wanted := range map[string]string{
		"SELECT VALUE COUNT(1) FROM c":                                    "[10]",
		"SELECT VALUE SUM(c.n) FROM c":                                    "[280]",
		"SELECT VALUE AVG(c.n) FROM c WHERE c.even":                       "[]",
		"SELECT c.even, COUNT(1) AS k FROM c GROUP BY c.even":             `[{"even":false,"k":10}]`,
		"SELECT DISTINCT VALUE c.even FROM c":                             "[false]",
		"SELECT VALUE c.id FROM c ORDER BY c.n OFFSET 2 LIMIT 2":          `["i13" "i19"]`,
		"SELECT TOP 1 VALUE {id: c.id, next: c.n + 1} FROM c":             `[{"id":"i01","next":2}]`,
		"SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS([1, 7, 8], c.n)":   `["i01" "i07"]`,
		"SELECT VALUE t FROM c JOIN t IN [c.n, c.n * 2] WHERE c.id='i07'": "[7 14]",
	} {
		rows, _ := drain(t, ctx, container, query, key("p1"), azcosmos.QueryOptions{})
		equal(t, query+" "+fmt.Sprint(rows), query+" "+wanted)
	}
	_, err := container.NewQueryItemsPager("SELECT FROM", key("p1"), nil).NextPage(ctx)
	refused(t, err, 400)
}

func TestQueriesOverAllPartitions(t *testing.T) {
	ctx, client := begin(t), connect(t, nil)
	container := makeContainer(t, makeDatabase(t, client), "queries", 24000, nil)
	fill(t, ctx, container)
	ranges, err := container.ReadFeedRanges(ctx, nil)
	must(t, err)
	equal(t, len(ranges), 4)
	for _, size := range []int32{0, 1, 7} {
		rows, _ := drain(t, ctx, container, "SELECT VALUE c.n FROM c WHERE c.n < 40", azcosmos.NewPartitionKey(),
			azcosmos.QueryOptions{PageSizeHint: size})
		var found []int
		for _, row := range rows {
			var n int
			must(t, json.Unmarshal([]byte(row), &n))
			found = append(found, n)
		}
		sort.Ints(found)
		equal(t, len(found), 40)
		for n, value := range found {
			equal(t, value, n)
		}
	}
	// This SDK merges nothing, and says so to the server; what would have to be merged is refused.
	for _, query := range []string{"SELECT * FROM c ORDER BY c.n", "SELECT VALUE COUNT(1) FROM c"} {
		_, err := container.NewQueryItemsPager(query, azcosmos.NewPartitionKey(), nil).NextPage(ctx)
		refused(t, err, 400)
	}
	var wanted []azcosmos.ItemIdentity
	for _, n := range []int{3, 14, 25, 58} {
		wanted = append(wanted,
			azcosmos.ItemIdentity{ID: fmt.Sprintf("i%02d", n), PartitionKey: key(fmt.Sprintf("p%d", n%6))})
	}
	wanted = append(wanted, azcosmos.ItemIdentity{ID: "absent", PartitionKey: key("p0")})
	many, err := container.ReadManyItems(ctx, wanted, nil)
	must(t, err)
	equal(t, len(many.Items), 4)
}
