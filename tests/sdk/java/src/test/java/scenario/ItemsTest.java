package scenario;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static scenario.Server.FOUR_PARTITIONS;
import static scenario.Server.item;
import static scenario.Server.refused;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchItemRequestOptions;
import com.azure.cosmos.models.CosmosBatchOperationResult;
import com.azure.cosmos.models.CosmosBatchResponse;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.CosmosPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class ItemsTest extends Scenario {
    private static final PartitionKey A = new PartitionKey("a");

    private static CosmosItemRequestOptions ifMatch(String etag) {
        return new CosmosItemRequestOptions().setIfMatchETag(etag);
    }

    @Test
    void itemsComeAndGoWithTheirETags() {
        CosmosContainer items = Server.container(database, "items", FOUR_PARTITIONS);
        CosmosItemResponse<ObjectNode> made = items.createItem(item("1", "a").put("n", 1), A, null);
        assertEquals(201, made.getStatusCode());
        assertTrue(made.getRequestCharge() > 0);
        assertNotNull(made.getSessionToken());
        refused(409, () -> items.createItem(item("1", "a"), A, null));
        CosmosItemResponse<ObjectNode> read = items.readItem("1", A, ObjectNode.class);
        assertEquals(made.getETag(), read.getETag());
        assertEquals(1, read.getItem().get("n").asInt());
        CosmosItemResponse<ObjectNode> replaced =
            items.replaceItem(item("1", "a").put("n", 2), "1", A, ifMatch(made.getETag()));
        assertNotEquals(made.getETag(), replaced.getETag());
        refused(412, () -> items.replaceItem(item("1", "a"), "1", A, ifMatch(made.getETag())));
        CosmosItemRequestOptions unchanged =
            new CosmosItemRequestOptions().setIfNoneMatchETag(replaced.getETag());
        assertEquals(304, items.readItem("1", A, unchanged, ObjectNode.class).getStatusCode());
        assertEquals(201, items.upsertItem(item("2", "a")).getStatusCode());
        assertEquals(200, items.upsertItem(item("2", "a").put("n", 3)).getStatusCode());
        refused(412, () -> items.deleteItem("2", A, ifMatch(made.getETag())));
        assertEquals(204, items.deleteItem("2", A, null).getStatusCode());
        refused(404, () -> items.readItem("2", A, ObjectNode.class));
        refused(404, () -> items.readItem("1", new PartitionKey("b"), ObjectNode.class));
        refused(400, () -> items.createItem(item("3", "a"), new PartitionKey("b"), null));
        CosmosItemRequestOptions silent = new CosmosItemRequestOptions().setContentResponseOnWriteEnabled(false);
        assertNull(items.createItem(item("4", "a"), A, silent).getItem());
    }

    @Test
    void patches() {
        CosmosContainer items = Server.container(database, "patches", 400);
        ObjectNode first = item("1", "a").put("n", 1).put("gone", true).put("old", "moved");
        first.putArray("list").add(1).add(3);
        items.createItem(first);
        CosmosPatchOperations patch = CosmosPatchOperations.create()
            .add("/list/1", 2)
            .set("/new", "value")
            .replace("/n", 10)
            .increment("/n", 5)
            .move("/old", "/moved")
            .remove("/gone");
        ObjectNode patched = items.patchItem("1", A, patch, ObjectNode.class).getItem();
        assertEquals("[1,2,3]", patched.get("list").toString());
        assertEquals(15, patched.get("n").asInt());
        assertEquals("moved", patched.get("moved").asText());
        assertFalse(patched.has("gone") || patched.has("old"));
        CosmosPatchItemRequestOptions guarded =
            new CosmosPatchItemRequestOptions().setFilterPredicate("FROM c WHERE c.n > 100");
        refused(412, () -> items.patchItem(
            "1", A, CosmosPatchOperations.create().set("/n", 0), guarded, ObjectNode.class));
        refused(400, () -> items.patchItem(
            "1", A, CosmosPatchOperations.create().replace("/absent", 0), ObjectNode.class));
        refused(404, () -> items.patchItem(
            "2", A, CosmosPatchOperations.create().set("/n", 0), ObjectNode.class));
    }

    @Test
    void batchesAreDoneWholeOrNotAtAll() {
        CosmosContainer items = Server.container(database, "batches", FOUR_PARTITIONS);
        items.createItem(item("old", "a").put("n", 1));
        items.createItem(item("doomed", "a"));
        CosmosBatch batch = CosmosBatch.createCosmosBatch(A);
        batch.createItemOperation(item("new", "a").put("n", 7));
        batch.readItemOperation("new");
        batch.replaceItemOperation("old", item("old", "a").put("n", 2));
        batch.patchItemOperation("old", CosmosPatchOperations.create().increment("/n", 1));
        batch.upsertItemOperation(item("other", "a"));
        batch.deleteItemOperation("doomed");
        CosmosBatchResponse done = items.executeCosmosBatch(batch);
        assertTrue(done.isSuccessStatusCode(), done.getErrorMessage());
        assertEquals(List.of(201, 200, 200, 200, 201, 204), codes(done));
        assertEquals(7, done.getResults().get(1).getItem(ObjectNode.class).get("n").asInt());
        assertEquals(3, done.getResults().get(3).getItem(ObjectNode.class).get("n").asInt());
        CosmosBatch failing = CosmosBatch.createCosmosBatch(A);
        failing.createItemOperation(item("never", "a"));
        failing.replaceItemOperation(
            "old", item("old", "a"), new CosmosBatchItemRequestOptions().setIfMatchETag("\"stale\""));
        failing.deleteItemOperation("new");
        CosmosBatchResponse failed = items.executeCosmosBatch(failing);
        assertEquals(412, failed.getStatusCode());
        assertEquals(List.of(424, 412, 424), codes(failed));
        refused(404, () -> items.readItem("never", A, ObjectNode.class));
    }

    private static List<Integer> codes(CosmosBatchResponse response) {
        return response.getResults().stream().map(CosmosBatchOperationResult::getStatusCode).toList();
    }

    @Test
    void bulkOverSeveralPartitions() {
        CosmosContainer items = Server.container(database, "bulk", FOUR_PARTITIONS);
        int count = 200;
        List<CosmosItemOperation> creates = new ArrayList<>();
        IntStream.range(0, count).forEach(n -> creates.add(CosmosBulkOperations.getCreateItemOperation(
            item("i" + n, "p" + n % 20).put("n", n), new PartitionKey("p" + n % 20))));
        // One of them is there already.
        items.createItem(item("i7", "p7"));
        List<Integer> codes = new ArrayList<>();
        items.executeBulkOperations(creates).forEach(done -> codes.add(done.getResponse().getStatusCode()));
        assertEquals(count, codes.size());
        assertEquals(1, codes.stream().filter(code -> code == 409).count());
        assertEquals(count - 1, codes.stream().filter(code -> code == 201).count());
        List<CosmosItemOperation> mixed = List.of(
            CosmosBulkOperations.getReadItemOperation("i1", new PartitionKey("p1")),
            CosmosBulkOperations.getDeleteItemOperation("i2", new PartitionKey("p2")),
            CosmosBulkOperations.getPatchItemOperation(
                "i3", new PartitionKey("p3"), CosmosPatchOperations.create().increment("/n", 100)),
            CosmosBulkOperations.getUpsertItemOperation(item("i4", "p4"), new PartitionKey("p4")),
            CosmosBulkOperations.getReplaceItemOperation("absent", item("absent", "p5"), new PartitionKey("p5")));
        int[] found = new int[mixed.size()];
        items.executeBulkOperations(mixed).forEach(
            done -> found[mixed.indexOf(done.getOperation())] = done.getResponse().getStatusCode());
        assertEquals(List.of(200, 204, 200, 200, 404), IntStream.of(found).boxed().toList());
        List<CosmosItemIdentity> wanted = IntStream.range(0, 30)
            .mapToObj(n -> new CosmosItemIdentity(new PartitionKey("p" + n % 20), "i" + n)).toList();
        assertEquals(29, items.readMany(wanted, ObjectNode.class).getResults().size());
    }
}
