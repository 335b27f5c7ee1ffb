package scenario;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static scenario.Server.FOUR_PARTITIONS;
import static scenario.Server.item;
import static scenario.Server.refused;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyBuilder;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.PartitionKind;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Keys of several levels; the SDK names the version of the key instead of counting it. */
class LevelsTest extends Scenario {
    @Test
    void hierarchicalKeys() {
        PartitionKeyDefinition definition = new PartitionKeyDefinition()
            .setPaths(List.of("/tenant", "/user"))
            .setKind(PartitionKind.MULTI_HASH)
            .setVersion(PartitionKeyDefinitionVersion.V2);
        CosmosContainer items =
            Server.container(database, new CosmosContainerProperties("levels", definition), FOUR_PARTITIONS);
        for (String user : List.of("u", "v")) {
            items.createItem(item(user, "-").put("tenant", "t").put("user", user));
        }
        PartitionKey both = new PartitionKeyBuilder().add("t").add("u").build();
        assertEquals("u", items.readItem("u", both, ObjectNode.class).getItem().get("user").asText());
        refused(404, () -> items.readItem("v", both, ObjectNode.class));
        PartitionKey prefix = new PartitionKeyBuilder().add("t").build();
        assertEquals(2, items.readAllItems(prefix, ObjectNode.class).stream().count());
    }
}
