package scenario;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static scenario.Server.FOUR_PARTITIONS;
import static scenario.Server.item;
import static scenario.Server.refused;

import com.azure.core.credential.AccessToken;
import com.azure.core.credential.TokenCredential;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.time.OffsetDateTime;
import java.util.Base64;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

/** Tokens of Entra ID, which the server of these scenarios takes unchecked; in direct mode each frame has one. */
class EntraTest extends Scenario {
    private static final long LIFETIME_SECONDS = 3600;

    private static String part(String json) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(json.getBytes(StandardCharsets.UTF_8));
    }

    private static TokenCredential credential() {
        return request -> {
            OffsetDateTime end = OffsetDateTime.now().plusSeconds(LIFETIME_SECONDS);
            long now = end.toEpochSecond() - LIFETIME_SECONDS;
            String claims = "{\"oid\":\"me\",\"iat\":%d,\"nbf\":%d,\"exp\":%d}".formatted(now, now, end.toEpochSecond());
            String token = part("{\"alg\":\"RS256\",\"typ\":\"JWT\"}") + "." + part(claims) + "." + part("unchecked");
            return Mono.just(new AccessToken(token, end));
        };
    }

    @Test
    void itemsAreReadAndWrittenWithATokenOfEntraId() {
        Server.container(database, "entra", FOUR_PARTITIONS);
        try (CosmosClient holder = Server.builder().credential(credential()).buildClient()) {
            CosmosContainer items = holder.getDatabase(database.getId()).getContainer("entra");
            for (int n = 0; n < 8; n++) {
                items.createItem(item("i" + n, "p" + n).put("n", n), new PartitionKey("p" + n), null);
            }
            assertEquals("i3", items.readItem("i3", new PartitionKey("p3"), ObjectNode.class).getItem().get("id").asText());
            assertEquals(8, items.queryItems("SELECT VALUE c.n FROM c ORDER BY c.n", new CosmosQueryRequestOptions(), JsonNode.class)
                .stream().count());
            refused(404, () -> items.readItem("none", new PartitionKey("p3"), ObjectNode.class));
            // It is for data: resources that have offers are made with a key.
            refused(403, () -> holder.createDatabase(Server.unique()));
        }
    }
}
