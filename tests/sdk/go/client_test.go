// Package scenario runs the official Go SDK, unmodified, against a server of ours.
package scenario

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// A scenario that takes longer than this hangs.
const patience = 2 * time.Minute

type item = map[string]any

// connect opens a client; the endpoint and the key come from the environment.
func connect(t *testing.T, change func(*azcosmos.ClientOptions)) *azcosmos.Client {
	t.Helper()
	endpoint, key := os.Getenv("ORRERY_ENDPOINT"), os.Getenv("ORRERY_KEY")
	if endpoint == "" || key == "" {
		t.Fatal("ORRERY_ENDPOINT and ORRERY_KEY are not set; run tests/sdk/run.sh")
	}
	credential, err := azcosmos.NewKeyCredential(key)
	must(t, err)
	options := &azcosmos.ClientOptions{EnableContentResponseOnWrite: true}
	if change != nil {
		change(options)
	}
	client, err := azcosmos.NewClientWithKey(endpoint, credential, options)
	must(t, err)
	return client
}

func begin(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// makeDatabase creates a database that is deleted at the end of the test.
func makeDatabase(t *testing.T, client *azcosmos.Client) *azcosmos.DatabaseClient {
	t.Helper()
	random := make([]byte, 6)
	_, _ = rand.Read(random)
	id := "go-" + hex.EncodeToString(random)
	made, err := client.CreateDatabase(context.Background(), azcosmos.DatabaseProperties{ID: id}, nil)
	must(t, err)
	equal(t, made.DatabaseProperties.ID, id)
	database, err := client.NewDatabase(id)
	must(t, err)
	t.Cleanup(func() {
		_, err := database.Delete(context.Background(), nil)
		must(t, err)
	})
	return database
}

// makeContainer creates a container whose throughput decides how many partitions it has.
func makeContainer(
	t *testing.T,
	database *azcosmos.DatabaseClient,
	id string,
	throughput int32,
	change func(*azcosmos.ContainerProperties),
) *azcosmos.ContainerClient {
	t.Helper()
	properties := azcosmos.ContainerProperties{
		ID: id,
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{
			Kind: azcosmos.PartitionKeyKindHash, Paths: []string{"/pk"}, Version: 2,
		},
	}
	if change != nil {
		change(&properties)
	}
	manual := azcosmos.NewManualThroughputProperties(throughput)
	_, err := database.CreateContainer(context.Background(), properties,
		&azcosmos.CreateContainerOptions{ThroughputProperties: &manual})
	must(t, err)
	container, err := database.NewContainer(id)
	must(t, err)
	return container
}

func key(value string) azcosmos.PartitionKey { return azcosmos.NewPartitionKeyString(value) }

func bytesOf(t *testing.T, value item) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	must(t, err)
	return text
}

func itemOf(t *testing.T, text []byte) item {
	t.Helper()
	var value item
	must(t, json.Unmarshal(text, &value))
	return value
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, found, wanted T) {
	t.Helper()
	if found != wanted {
		t.Fatalf("%v instead of %v", found, wanted)
	}
}

// refused checks that an operation failed with this status.
func refused(t *testing.T, err error, status int) {
	t.Helper()
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		t.Fatalf("no answer with %d, but %v", status, err)
	}
	if answer.StatusCode != status {
		t.Fatalf("%d instead of %d: %v", answer.StatusCode, status, err)
	}
}

// spy sees every answer on its way to the SDK.
type spy struct {
	see func(*http.Response)
}

func (s spy) Do(request *policy.Request) (*http.Response, error) {
	answer, err := request.Next()
	if err == nil {
		s.see(answer)
	}
	return answer, err
}
