//! How the scenarios reach the server: one endpoint and key from the environment.

use azure_data_cosmos::models::{ContainerProperties, PartitionKeyDefinition, ThroughputProperties};
use azure_data_cosmos::options::{
    ConnectionPoolOptions, ContentResponseOnWrite, CreateContainerOptions, ItemWriteOptions,
    OperationOptions, Region, ServerCertificateValidation,
};
use azure_data_cosmos::{
    AccountEndpoint, AccountReference, ContainerClient, CosmosClient, CosmosError, CosmosRuntime,
    DatabaseClient, RoutingStrategy,
};

pub type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A client that trusts the server's own certificate, as it would an emulator's.
pub async fn connect() -> Result<CosmosClient, Box<dyn std::error::Error>> {
    let endpoint: AccountEndpoint = std::env::var("ORRERY_ENDPOINT")?.parse()?;
    let key = std::env::var("ORRERY_KEY")?;
    let pool = ConnectionPoolOptions::builder()
        .with_server_certificate_validation(ServerCertificateValidation::RequiredUnlessEmulator)
        .build()?;
    let runtime = CosmosRuntime::builder().with_connection_pool(pool).build().await?;
    let client = CosmosClient::builder()
        .with_runtime(runtime)
        .build(
            AccountReference::with_authentication_key(endpoint, key),
            RoutingStrategy::ProximityTo(Region::SOUTH_CENTRAL_US),
        )
        .await?;
    Ok(client)
}

/// A fresh database, named after the test that uses it.
pub async fn database(label: &str) -> Result<DatabaseClient, Box<dyn std::error::Error>> {
    let client = connect().await?;
    let name = format!("rs-{label}-{}", azure_core::Uuid::new_v4());
    client.create_database(&name, None).await?;
    Ok(client.database_client(name.as_str()))
}

/// A container with manual throughput.
pub async fn container(
    database: &DatabaseClient,
    name: &str,
    key: impl Into<PartitionKeyDefinition>,
    throughput: u64,
) -> Result<ContainerClient, Box<dyn std::error::Error>> {
    let options = CreateContainerOptions::default().with_throughput(ThroughputProperties::manual(throughput));
    let properties = ContainerProperties::new(name.to_owned(), key.into());
    database.create_container(properties, Some(options)).await?;
    Ok(database.container_client(name, None).await?)
}

/// Write options that ask for the stored item in the answer; by default the SDK asks for none.
pub fn with_content() -> ItemWriteOptions {
    let mut operation = OperationOptions::default();
    operation.content_response_on_write = Some(ContentResponseOnWrite::Enabled);
    ItemWriteOptions::default().with_operation_options(operation)
}

/// The status code of an operation that must fail.
pub fn status_of<T>(result: Result<T, CosmosError>) -> u16 {
    match result {
        Ok(_) => panic!("the operation succeeded but had to fail"),
        Err(error) => u16::from(error.status().status_code()),
    }
}
