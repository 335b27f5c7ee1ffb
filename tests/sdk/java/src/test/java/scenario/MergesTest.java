package scenario;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static scenario.Server.FOUR_PARTITIONS;
import static scenario.Server.item;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** A client that knows partitions which were split, and whose parts were merged with their neighbours before it looked again. */
class MergesTest extends Scenario {
    private static final int ITEMS = 120;
    private static final List<Integer> ALL = IntStream.range(0, ITEMS).boxed().toList();

    @Test
    void aRangeWhosePartWasMergedWithItsNeighbourIsReadOnce() throws Exception {
        CosmosContainer container = Server.container(database, "neighbours", FOUR_PARTITIONS);
        for (int n = 0; n < ITEMS; n++) {
            container.createItem(item("i" + n, "p" + n).put("n", n));
        }
        String base = "dbs/" + database.getId() + "/colls/neighbours/partitions/";
        for (String query : List.of("SELECT VALUE c.n FROM c ORDER BY c.n", "SELECT VALUE c.n FROM c")) {
            try (CosmosClient client = Server.connect()) {
                CosmosContainer known = client.getDatabase(database.getId()).getContainer("neighbours");
                assertEquals(ALL, rows(known, query), "before");
                List<JsonNode> before = ranges(base);
                Server.manage("POST", base + before.get(1).get("id").asText() + "/split", "{\"children\":2}");
                List<JsonNode> split = ranges(base);
                // The right part of the second range, and the third.
                String pair = "{\"left\":\"%s\",\"right\":\"%s\"}";
                Server.manage("POST", base + "merge", pair.formatted(split.get(2).get("id").asText(), split.get(3).get("id").asText()));
                assertEquals(ALL, rows(known, query), query);
            }
        }
    }

    private static List<JsonNode> ranges(String base) throws Exception {
        JsonNode answer = Server.manage("GET", base.substring(0, base.length() - 1), null);
        return IntStream.range(0, answer.get("partitions").size()).mapToObj(answer.get("partitions")::get).toList();
    }

    private static List<Integer> rows(CosmosContainer container, String query) {
        return container.queryItems(query, new CosmosQueryRequestOptions(), JsonNode.class).stream().map(JsonNode::asInt).sorted().toList();
    }
}
