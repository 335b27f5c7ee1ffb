package scenario

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestDatabasesContainersAndTheirThroughput(t *testing.T) {
	ctx, client := begin(t), connect(t, nil)
	database := makeDatabase(t, client)
	_, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: database.ID()}, nil)
	refused(t, err, 409)
	ttl := int32(3600)
	container := makeContainer(t, database, "settings", 1000, func(properties *azcosmos.ContainerProperties) {
		properties.DefaultTimeToLive = &ttl
		properties.UniqueKeyPolicy = &azcosmos.UniqueKeyPolicy{UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/mail"}}}}
		properties.IndexingPolicy = &azcosmos.IndexingPolicy{
			Automatic: true, IndexingMode: azcosmos.IndexingModeConsistent,
			IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}},
			ExcludedPaths: []azcosmos.ExcludedPath{{Path: "/text/?"}},
		}
	})
	read, err := container.Read(ctx, nil)
	must(t, err)
	equal(t, *read.ContainerProperties.DefaultTimeToLive, ttl)
	equal(t, read.ContainerProperties.PartitionKeyDefinition.Paths[0], "/pk")
	changed := *read.ContainerProperties
	changed.DefaultTimeToLive = nil
	replaced, err := container.Replace(ctx, changed, nil)
	must(t, err)
	if replaced.ContainerProperties.DefaultTimeToLive != nil {
		t.Fatal("the time to live is still there")
	}
	_, err = container.CreateItem(ctx, key("a"), bytesOf(t, item{"id": "1", "pk": "a", "mail": "m"}), nil)
	must(t, err)
	_, err = container.CreateItem(ctx, key("a"), bytesOf(t, item{"id": "2", "pk": "a", "mail": "m"}), nil)
	refused(t, err, 409)

	throughput, err := container.ReadThroughput(ctx, nil)
	must(t, err)
	units, isManual := throughput.ThroughputProperties.ManualThroughput()
	equal(t, fmt.Sprint(units, isManual), "1000 true")
	_, err = container.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(1200), nil)
	must(t, err)
	throughput, err = container.ReadThroughput(ctx, nil)
	must(t, err)
	units, _ = throughput.ThroughputProperties.ManualThroughput()
	equal(t, units, 1200)
	_, err = container.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(1), nil)
	refused(t, err, 400)

	var names []string
	pager := database.NewQueryContainersPager("SELECT * FROM c", nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		must(t, err)
		for _, found := range page.Containers {
			names = append(names, found.ID)
		}
	}
	equal(t, fmt.Sprint(names), "[settings]")
	_, err = container.Delete(ctx, nil)
	must(t, err)
	_, err = container.Read(ctx, nil)
	refused(t, err, 404)
}

// Every property is an index term to write, so these small items are expensive ones.
func expensive(number int) item {
	value := item{"id": fmt.Sprintf("item-%d", number), "pk": strconv.Itoa(number)}
	for property := range 500 {
		value[fmt.Sprintf("p%d", property)] = property
	}
	return value
}

func TestRefusedWritesAreTriedAgain(t *testing.T) {
	ctx := begin(t)
	var refusals, unexplained atomic.Int32
	client := connect(t, func(options *azcosmos.ClientOptions) {
		options.Retry.MaxRetries = 100
		options.PerRetryPolicies = []policy.Policy{spy{see: func(answer *http.Response) {
			if answer.StatusCode != http.StatusTooManyRequests {
				return
			}
			refusals.Add(1)
			wait, err := strconv.ParseFloat(answer.Header.Get("x-ms-retry-after-ms"), 64)
			if err != nil || wait <= 0 || answer.Header.Get("x-ms-substatus") != "3200" {
				unexplained.Add(1)
			}
		}}}
	})
	container := makeContainer(t, makeDatabase(t, client), "slow", 400, nil)
	const writes, writers = 40, 8
	var wait sync.WaitGroup
	failures := make(chan error, writes)
	for writer := range writers {
		wait.Go(func() {
			for number := writer; number < writes; number += writers {
				if _, err := container.UpsertItem(ctx, key(strconv.Itoa(number)), bytesOf(t, expensive(number)), nil); err != nil {
					failures <- err
				}
			}
		})
	}
	wait.Wait()
	close(failures)
	for err := range failures {
		t.Fatal(err)
	}
	rows, _ := drain(t, ctx, container, "SELECT c.id FROM c", azcosmos.NewPartitionKey(), azcosmos.QueryOptions{})
	equal(t, len(rows), writes)
	if refusals.Load() == 0 {
		t.Fatal("no request was throttled")
	}
	equal(t, unexplained.Load(), 0)
}
