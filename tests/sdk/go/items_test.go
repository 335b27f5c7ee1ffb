package scenario

import (
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestItemsComeAndGoWithTheirETags(t *testing.T) {
	ctx, client := begin(t), connect(t, nil)
	container := makeContainer(t, makeDatabase(t, client), "items", 24000, nil)
	made, err := container.CreateItem(ctx, key("a"), bytesOf(t, item{"id": "1", "pk": "a", "n": 1}), nil)
	must(t, err)
	equal(t, made.RawResponse.StatusCode, 201)
	if made.ETag == "" || made.RequestCharge <= 0 || made.ActivityID == "" || made.SessionToken == nil {
		t.Fatalf("an answer without its headers: %+v", made)
	}
	_, err = container.CreateItem(ctx, key("a"), bytesOf(t, item{"id": "1", "pk": "a"}), nil)
	refused(t, err, 409)
	read, err := container.ReadItem(ctx, key("a"), "1", &azcosmos.ItemOptions{SessionToken: made.SessionToken})
	must(t, err)
	equal(t, read.ETag, made.ETag)
	equal(t, itemOf(t, read.Value)["n"].(float64), 1)
	changed := bytesOf(t, item{"id": "1", "pk": "a", "n": 2})
	replaced, err := container.ReplaceItem(ctx, key("a"), "1", changed, &azcosmos.ItemOptions{IfMatchEtag: &made.ETag})
	must(t, err)
	if replaced.ETag == made.ETag {
		t.Fatal("a change without a new ETag")
	}
	_, err = container.ReplaceItem(ctx, key("a"), "1", changed, &azcosmos.ItemOptions{IfMatchEtag: &made.ETag})
	refused(t, err, 412)
	upserted, err := container.UpsertItem(ctx, key("a"), bytesOf(t, item{"id": "2", "pk": "a"}), nil)
	must(t, err)
	equal(t, upserted.RawResponse.StatusCode, 201)
	upserted, err = container.UpsertItem(ctx, key("a"), bytesOf(t, item{"id": "2", "pk": "a", "n": 3}), nil)
	must(t, err)
	equal(t, upserted.RawResponse.StatusCode, 200)
	_, err = container.DeleteItem(ctx, key("a"), "2", &azcosmos.ItemOptions{IfMatchEtag: &made.ETag})
	refused(t, err, 412)
	deleted, err := container.DeleteItem(ctx, key("a"), "2", nil)
	must(t, err)
	equal(t, deleted.RawResponse.StatusCode, 204)
	_, err = container.ReadItem(ctx, key("a"), "2", nil)
	refused(t, err, 404)
	_, err = container.ReadItem(ctx, key("b"), "1", nil)
	refused(t, err, 404)
	_, err = container.CreateItem(ctx, key("b"), bytesOf(t, item{"id": "3", "pk": "a"}), nil)
	refused(t, err, 400)
}

func TestWritesWithoutContent(t *testing.T) {
	ctx := begin(t)
	client := connect(t, func(options *azcosmos.ClientOptions) { options.EnableContentResponseOnWrite = false })
	container := makeContainer(t, makeDatabase(t, client), "silent", 400, nil)
	made, err := container.CreateItem(ctx, key("a"), bytesOf(t, item{"id": "1", "pk": "a"}), nil)
	must(t, err)
	equal(t, len(made.Value), 0)
	if made.ETag == "" {
		t.Fatal("no ETag")
	}
}

func TestPatches(t *testing.T) {
	ctx, client := begin(t), connect(t, nil)
	container := makeContainer(t, makeDatabase(t, client), "patches", 400, nil)
	_, err := container.CreateItem(ctx, key("a"),
		bytesOf(t, item{"id": "1", "pk": "a", "n": 1, "gone": true, "list": []int{1, 3}}), nil)
	must(t, err)
	patch := azcosmos.PatchOperations{}
	patch.AppendAdd("/list/1", 2)
	patch.AppendSet("/new", item{"deep": "value"})
	patch.AppendReplace("/n", 10)
	patch.AppendIncrement("/n", 5)
	patch.AppendRemove("/gone")
	patched, err := container.PatchItem(ctx, key("a"), "1", patch, nil)
	must(t, err)
	value := itemOf(t, patched.Value)
	equal(t, fmt.Sprint(value["list"], value["n"], value["new"], value["gone"]), "[1 2 3] 15 map[deep:value] <nil>")
	guarded := azcosmos.PatchOperations{}
	guarded.SetCondition("FROM c WHERE c.n > 100")
	guarded.AppendSet("/n", 0)
	_, err = container.PatchItem(ctx, key("a"), "1", guarded, nil)
	refused(t, err, 412)
	missing := azcosmos.PatchOperations{}
	missing.AppendReplace("/absent", 0)
	_, err = container.PatchItem(ctx, key("a"), "1", missing, nil)
	refused(t, err, 400)
}

func TestBatchesAreDoneWholeOrNotAtAll(t *testing.T) {
	ctx, client := begin(t), connect(t, nil)
	container := makeContainer(t, makeDatabase(t, client), "batches", 24000, nil)
	for _, id := range []string{"old", "doomed"} {
		_, err := container.CreateItem(ctx, key("a"), bytesOf(t, item{"id": id, "pk": "a", "n": 1}), nil)
		must(t, err)
	}
	patch := azcosmos.PatchOperations{}
	patch.AppendIncrement("/n", 1)
	batch := container.NewTransactionalBatch(key("a"))
	batch.CreateItem(bytesOf(t, item{"id": "new", "pk": "a", "n": 7}), nil)
	batch.ReadItem("new", nil)
	batch.ReplaceItem("old", bytesOf(t, item{"id": "old", "pk": "a", "n": 2}), nil)
	batch.PatchItem("old", patch, nil)
	batch.UpsertItem(bytesOf(t, item{"id": "other", "pk": "a"}), nil)
	batch.DeleteItem("doomed", nil)
	done, err := container.ExecuteTransactionalBatch(ctx, batch,
		&azcosmos.TransactionalBatchOptions{EnableContentResponseOnWrite: true})
	must(t, err)
	equal(t, done.Success, true)
	var codes []int32
	for _, result := range done.OperationResults {
		codes = append(codes, result.StatusCode)
	}
	equal(t, fmt.Sprint(codes), "[201 200 200 200 201 204]")
	equal(t, itemOf(t, done.OperationResults[1].ResourceBody)["n"].(float64), 7)
	equal(t, itemOf(t, done.OperationResults[3].ResourceBody)["n"].(float64), 3)

	stale := azcore.ETag(`"stale"`)
	failing := container.NewTransactionalBatch(key("a"))
	failing.CreateItem(bytesOf(t, item{"id": "never", "pk": "a"}), nil)
	failing.ReplaceItem("old", bytesOf(t, item{"id": "old", "pk": "a"}),
		&azcosmos.TransactionalBatchItemOptions{IfMatchETag: &stale})
	failing.DeleteItem("new", nil)
	failed, err := container.ExecuteTransactionalBatch(ctx, failing, nil)
	must(t, err)
	equal(t, failed.Success, false)
	codes = nil
	for _, result := range failed.OperationResults {
		codes = append(codes, result.StatusCode)
	}
	equal(t, fmt.Sprint(codes), "[424 412 424]")
	_, err = container.ReadItem(ctx, key("a"), "never", nil)
	refused(t, err, 404)
}

func TestKeysOfEveryKind(t *testing.T) {
	ctx, client := begin(t), connect(t, nil)
	database := makeDatabase(t, client)
	container := makeContainer(t, database, "kinds", 24000, nil)
	for id, place := range map[string]struct {
		key   azcosmos.PartitionKey
		value any
	}{
		"text":   {key("ü"), "ü"},
		"number": {azcosmos.NewPartitionKeyNumber(1.5), 1.5},
		"bool":   {azcosmos.NewPartitionKeyBool(true), true},
		"null":   {azcosmos.NullPartitionKey, nil},
	} {
		_, err := container.CreateItem(ctx, place.key, bytesOf(t, item{"id": id, "pk": place.value}), nil)
		must(t, err)
		read, err := container.ReadItem(ctx, place.key, id, nil)
		must(t, err)
		equal(t, itemOf(t, read.Value)["id"].(string), id)
	}
	levels := makeContainer(t, database, "levels", 24000, func(properties *azcosmos.ContainerProperties) {
		properties.PartitionKeyDefinition = azcosmos.PartitionKeyDefinition{
			Kind: azcosmos.PartitionKeyKindMultiHash, Paths: []string{"/tenant", "/user"}, Version: 2,
		}
	})
	both := azcosmos.NewPartitionKey().AppendString("t").AppendString("u")
	_, err := levels.CreateItem(ctx, both, bytesOf(t, item{"id": "1", "tenant": "t", "user": "u"}), nil)
	must(t, err)
	_, err = levels.ReadItem(ctx, both, "1", nil)
	must(t, err)
	_, err = levels.ReadItem(ctx, azcosmos.NewPartitionKey().AppendString("t").AppendString("v"), "1", nil)
	refused(t, err, 404)
}
