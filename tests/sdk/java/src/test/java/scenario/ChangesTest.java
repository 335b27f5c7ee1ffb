package scenario;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static scenario.Server.FOUR_PARTITIONS;
import static scenario.Server.item;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ChangeFeedPolicy;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

class ChangesTest extends Scenario {
    private record Read(List<String> ids, String continuation) {}

    /** Reads until nothing is new. */
    private static Read drain(CosmosContainer items, CosmosChangeFeedRequestOptions options) {
        List<String> ids = new ArrayList<>();
        String continuation = null;
        for (FeedResponse<ObjectNode> page
            : items.queryChangeFeed(options.setMaxItemCount(3), ObjectNode.class).iterableByPage()) {
            page.getResults().forEach(change -> ids.add(change.get("id").asText()));
            continuation = page.getContinuationToken();
        }
        return new Read(ids, continuation);
    }

    @Test
    void fromTheBeginningFromNowAndFromAContinuation() {
        CosmosContainer items = Server.container(database, "changes", FOUR_PARTITIONS);
        Set<String> wanted = new TreeSet<>();
        for (int n = 0; n < 24; n++) {
            items.createItem(item("i" + n, "p" + n % 5));
            wanted.add("i" + n);
        }
        FeedRange all = FeedRange.forFullRange();
        Read begun = drain(items, CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(all));
        assertEquals(wanted, new TreeSet<>(begun.ids()));
        assertEquals(24, begun.ids().size());
        Read now = drain(items, CosmosChangeFeedRequestOptions.createForProcessingFromNow(all));
        assertEquals(List.of(), now.ids());
        items.upsertItem(item("i3", "p3").put("n", 1));
        items.deleteItem("i4", new PartitionKey("p4"), null);
        for (String continuation : List.of(begun.continuation(), now.continuation())) {
            Read later =
                drain(items, CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(continuation));
            assertEquals(List.of("i3"), later.ids());
        }
        int found = 0;
        for (FeedRange range : items.getFeedRanges()) {
            found += drain(items, CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(range)).ids().size();
        }
        assertEquals(23, found);
        FeedRange one = FeedRange.forLogicalPartition(new PartitionKey("p2"));
        assertEquals(List.of("i2", "i7", "i12", "i17", "i22"),
            drain(items, CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(one)).ids());
        assertTrue(begun.continuation().length() > 10);
    }

    @Test
    void allVersionsAndDeletes() {
        CosmosContainerProperties settings = new CosmosContainerProperties("versions", "/pk")
            .setChangeFeedPolicy(ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(10)));
        CosmosContainer items = Server.container(database, settings, FOUR_PARTITIONS);
        FeedRange one = FeedRange.forLogicalPartition(new PartitionKey("p"));
        for (FeedRange range : List.of(FeedRange.forFullRange(), one)) {
            CosmosChangeFeedRequestOptions now = CosmosChangeFeedRequestOptions.createForProcessingFromNow(range);
            String start = versions(items, now.allVersionsAndDeletes(), new ArrayList<>());
            items.createItem(item("a", "p").put("n", 1));
            items.upsertItem(item("a", "p").put("n", 2));
            items.deleteItem("a", new PartitionKey("p"), null);
            List<String> seen = new ArrayList<>();
            versions(items, CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(start).allVersionsAndDeletes(), seen);
            assertEquals(List.of("create 1", "replace 2", "delete null"), seen);
        }
    }

    /** Reads until nothing is new, and says where that was. */
    private static String versions(CosmosContainer items, CosmosChangeFeedRequestOptions options, List<String> seen) {
        String continuation = null;
        for (FeedResponse<ObjectNode> page : items.queryChangeFeed(options, ObjectNode.class).iterableByPage()) {
            for (ObjectNode change : page.getResults()) {
                JsonNode n = change.path("current").get("n");
                seen.add(change.get("metadata").get("operationType").asText() + " " + n);
            }
            continuation = page.getContinuationToken();
        }
        return continuation;
    }
}
