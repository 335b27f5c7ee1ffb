package scenario

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

type properties = map[string]any

// makeTable creates a table that is deleted at the end of the test.
func makeTable(t *testing.T) *aztables.Client {
	t.Helper()
	random := make([]byte, 6)
	_, _ = rand.Read(random)
	table := tables(t, os.Getenv("ORRERY_KEY")).NewClient("go" + hex.EncodeToString(random))
	_, err := table.CreateTable(context.Background(), nil)
	must(t, err)
	t.Cleanup(func() {
		_, err := table.Delete(context.Background(), nil)
		must(t, err)
	})
	return table
}

func tables(t *testing.T, key string) *aztables.ServiceClient {
	t.Helper()
	credential, err := aztables.NewSharedKeyCredential("orrery", key)
	must(t, err)
	client, err := aztables.NewServiceClientWithSharedKey(os.Getenv("ORRERY_TABLES"), credential, nil)
	must(t, err)
	return client
}

func entity(t *testing.T, partition, row string, values properties) []byte {
	t.Helper()
	text, err := json.Marshal(aztables.EDMEntity{
		Entity: aztables.Entity{PartitionKey: partition, RowKey: row}, Properties: values,
	})
	must(t, err)
	return text
}

func edm(t *testing.T, text []byte) aztables.EDMEntity {
	t.Helper()
	var read aztables.EDMEntity
	must(t, json.Unmarshal(text, &read))
	return read
}

// holds checks the properties of an entity that is stored.
func holds(t *testing.T, table *aztables.Client, partition, row string, wanted properties) azcore.ETag {
	t.Helper()
	answer, err := table.GetEntity(context.Background(), partition, row, nil)
	must(t, err)
	if read := edm(t, answer.Value); !reflect.DeepEqual(read.Properties, wanted) {
		t.Fatalf("%v instead of %v", read.Properties, wanted)
	}
	return answer.ETag
}

// rows reads all pages of a query, each with no more rows than it may have.
func rows(t *testing.T, table *aztables.Client, filter string, top int32) []string {
	t.Helper()
	found := []string{}
	pager := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter, Top: &top})
	for pager.More() {
		page, err := pager.NextPage(context.Background())
		must(t, err)
		if len(page.Entities) > int(top) {
			t.Fatalf("%d rows on a page of %d", len(page.Entities), top)
		}
		for _, row := range page.Entities {
			read := edm(t, row)
			found = append(found, read.PartitionKey+read.RowKey)
		}
	}
	return found
}

func TestTablesAreMadeListedAndDeleted(t *testing.T) {
	ctx, service := begin(t), tables(t, os.Getenv("ORRERY_KEY"))
	table := makeTable(t)
	_, err := table.CreateTable(ctx, nil)
	refused(t, err, 409)
	_, err = service.CreateTable(ctx, "goother", nil)
	must(t, err)
	filter := "TableName eq 'goother'"
	pager := service.NewListTablesPager(&aztables.ListTablesOptions{Filter: &filter})
	page, err := pager.NextPage(ctx)
	must(t, err)
	equal(t, len(page.Tables), 1)
	equal(t, *page.Tables[0].Name, "goother")
	_, err = service.DeleteTable(ctx, "goother", nil)
	must(t, err)
	_, err = service.DeleteTable(ctx, "goother", nil)
	refused(t, err, 404)
}

func TestValuesOfAllTypesComeBackAsTheyWent(t *testing.T) {
	ctx, table := begin(t), makeTable(t)
	values := properties{
		"text":   "it's \"ü\"",
		"number": int32(5),
		"half":   5.5,
		"huge":   1e300,
		"long":   aztables.EDMInt64(-(1 << 40)),
		"flag":   false,
		"bytes":  aztables.EDMBinary{0, 255},
		"when":   aztables.EDMDateTime(time.Date(2024, 2, 29, 12, 34, 56, 789123400, time.UTC)),
		"guid":   aztables.EDMGUID("c9da6455-213d-42c9-9a79-3e9149a57833"),
		"id":     "mine",
	}
	// No quote in the key: this SDK doubles it in the body of an entity too, and then does not find what it wrote.
	row := "é +%&"
	made, err := table.AddEntity(ctx, entity(t, "p", row, values), nil)
	must(t, err)
	equal(t, holds(t, table, "p", row, values), made.ETag)
	_, err = table.AddEntity(ctx, entity(t, "p", row, nil), nil)
	refused(t, err, 409)
}

func TestChangesMergeOrReplaceAndInsistOnVersions(t *testing.T) {
	ctx, table := begin(t), makeTable(t)
	first, err := table.AddEntity(ctx, entity(t, "p", "r", properties{"a": int32(1), "b": int32(2)}), nil)
	must(t, err)
	merge := func(row string, values properties, match *azcore.ETag) error {
		_, err := table.UpdateEntity(ctx, entity(t, "p", row, values),
			&aztables.UpdateEntityOptions{IfMatch: match, UpdateMode: aztables.UpdateModeMerge})
		return err
	}
	must(t, merge("r", properties{"b": int32(3), "c": int32(4)}, nil))
	holds(t, table, "p", "r", properties{"a": int32(1), "b": int32(3), "c": int32(4)})
	_, err = table.UpdateEntity(ctx, entity(t, "p", "r", properties{"d": int32(5)}),
		&aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeReplace})
	must(t, err)
	current := holds(t, table, "p", "r", properties{"d": int32(5)})
	refused(t, merge("r", properties{"e": int32(6)}, &first.ETag), 412)
	must(t, merge("r", properties{"e": int32(6)}, &current))
	refused(t, merge("none", properties{"e": int32(6)}, nil), 404)
	for _, values := range []properties{{"a": int32(1)}, {"b": int32(2)}} {
		_, err = table.UpsertEntity(ctx, entity(t, "p", "new", values),
			&aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeMerge})
		must(t, err)
	}
	holds(t, table, "p", "new", properties{"a": int32(1), "b": int32(2)})
	_, err = table.DeleteEntity(ctx, "p", "new", &aztables.DeleteEntityOptions{IfMatch: &first.ETag})
	refused(t, err, 412)
	_, err = table.DeleteEntity(ctx, "p", "new", nil)
	must(t, err)
	_, err = table.GetEntity(ctx, "p", "new", nil)
	refused(t, err, 404)
}

func TestQueriesFilterAndGoOnWhereAPageEnds(t *testing.T) {
	ctx, table := begin(t), makeTable(t)
	for _, partition := range []string{"c", "a", "b"} {
		for _, row := range []int{2, 1, 3} {
			values := properties{"n": int32(row), "long": aztables.EDMInt64(int64(row-2) << 40)}
			_, err := table.AddEntity(ctx, entity(t, partition, fmt.Sprint(row), values), nil)
			must(t, err)
		}
	}
	for filter, wanted := range map[string][]string{
		"PartitionKey ge 'a'":                              {"a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3"},
		"PartitionKey eq 'b' and RowKey gt '1'":            {"b2", "b3"},
		"long lt 0L":                                       {"a1", "b1", "c1"},
		"not (n le 2) and (PartitionKey ne 'b' or n eq 2)": {"a3", "c3"},
		"Timestamp lt datetime'2024-01-01T00:00:00Z'":      {},
	} {
		for _, top := range []int32{2, 1000} {
			if found := rows(t, table, filter, top); !reflect.DeepEqual(found, wanted) {
				t.Fatalf("%s: %v instead of %v", filter, found, wanted)
			}
		}
	}
	wrong := "aaa bbb"
	_, err := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &wrong}).NextPage(ctx)
	refused(t, err, 400)
}

func TestBatchesHappenWholeOrNotAtAll(t *testing.T) {
	ctx, table := begin(t), makeTable(t)
	_, err := table.AddEntity(ctx, entity(t, "p", "gone", nil), nil)
	must(t, err)
	actions := []aztables.TransactionAction{{ActionType: aztables.TransactionTypeDelete, Entity: entity(t, "p", "gone", nil)}}
	for number := range 20 {
		row := entity(t, "p", fmt.Sprintf("%02d", number), properties{"n": int32(number)})
		actions = append(actions, aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd, Entity: row})
	}
	_, err = table.SubmitTransaction(ctx, actions, nil)
	must(t, err)
	equal(t, len(rows(t, table, "PartitionKey eq 'p'", 1000)), 20)
	_, err = table.SubmitTransaction(ctx, []aztables.TransactionAction{
		{ActionType: aztables.TransactionTypeAdd, Entity: entity(t, "p", "never", nil)},
		{ActionType: aztables.TransactionTypeAdd, Entity: entity(t, "p", "07", nil)},
	}, nil)
	// The status that this SDK tells is that of the whole batch; the body says what went wrong.
	refused(t, err, 202)
	if !strings.Contains(err.Error(), "EntityAlreadyExists") {
		t.Fatal(err)
	}
	_, err = table.GetEntity(ctx, "p", "never", nil)
	refused(t, err, 404)
}

func TestSignaturesOpenWhatTheyShould(t *testing.T) {
	ctx, table := begin(t), makeTable(t)
	_, err := table.AddEntity(ctx, entity(t, "p", "r", properties{"a": int32(1)}), nil)
	must(t, err)
	now := time.Now().UTC()
	address, err := table.GetTableSASURL(aztables.SASPermissions{Read: true}, now.Add(-time.Hour), now.Add(time.Hour))
	must(t, err)
	reader, err := aztables.NewClientWithNoCredential(address, nil)
	must(t, err)
	holds(t, reader, "p", "r", properties{"a": int32(1)})
	_, err = reader.AddEntity(ctx, entity(t, "p", "s", nil), nil)
	refused(t, err, 403)
	_, err = tables(t, "AAECAwQFBgcICQoLDA0ODw==").CreateTable(ctx, "never", nil)
	refused(t, err, 401)
}
