package scenario;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static scenario.Server.FOUR_PARTITIONS;
import static scenario.Server.item;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

class ChangesTest extends Scenario {
    private record Read(List<String> ids, String continuation) {}

    /** Reads until nothing is new. */
    private static Read drain(CosmosContainer items, CosmosChangeFeedRequestOptions options) {
        List<String> ids = new java.util.ArrayList<>();
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
}
