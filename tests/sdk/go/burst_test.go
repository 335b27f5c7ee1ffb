package scenario

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// A burst that the budget can serve is served: nobody changes how often this SDK tries again.
func TestABurstGetsThroughWithDefaultRetries(t *testing.T) {
	ctx, client := begin(t), connect(t, nil)
	container := makeContainer(t, makeDatabase(t, client), "burst", 400, nil)
	const writes, writers = 600, 50
	var group sync.WaitGroup
	var lock sync.Mutex
	var failures []error
	var charge float64
	began := time.Now()
	for writer := range writers {
		group.Go(func() {
			for number := writer; number < writes; number += writers {
				pk := fmt.Sprintf("p%d", number)
				made, err := container.CreateItem(ctx, key(pk), bytesOf(t, item{"id": pk, "pk": pk, "n": number}), nil)
				lock.Lock()
				charge += float64(made.RequestCharge)
				if err != nil {
					failures = append(failures, err)
				}
				lock.Unlock()
			}
		})
	}
	group.Wait()
	seconds, ideal := time.Since(began).Seconds(), charge/400
	t.Logf("%.2f times what the budget needs", seconds/ideal)
	if len(failures) > 0 {
		t.Fatalf("%d of %d writes were lost: %v", len(failures), writes, failures[0])
	}
	// The budget decides how long it takes, not the client, which has a second for its connections and first steps.
	if seconds > 1.3*ideal+1 {
		t.Fatalf("%.1f s for %.0f RU, which are %.1f s", seconds, charge, ideal)
	}
	rows, _ := drain(t, ctx, container, "SELECT c.id FROM c", azcosmos.NewPartitionKey(), azcosmos.QueryOptions{})
	equal(t, len(rows), writes)
}
