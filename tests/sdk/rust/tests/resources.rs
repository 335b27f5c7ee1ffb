//! Databases, containers, partitions and throughput.

use azure_data_cosmos::Query;
use azure_data_cosmos::models::{ContainerProperties, ThroughputProperties, TimeToLive};
use azure_data_cosmos::options::CreateContainerOptions;
use futures::TryStreamExt;
use orrery_sdk_scenario::{Outcome, connect, container, database, status_of};

#[tokio::test]
async fn a_database_is_made_read_found_and_deleted() -> Outcome {
    let database = database("life").await?;
    let name = database.name().expect("addressed by name").to_owned();
    let properties = database.read(None).await?.into_model()?;
    assert_eq!(properties.id.as_deref(), Some(name.as_str()));
    let client = connect().await?;
    assert_eq!(status_of(client.create_database(&name, None).await), 409);
    let query = Query::from("SELECT * FROM root r WHERE r.id = @id").with_parameter("@id", &name)?;
    let found: Vec<_> = client.query_databases(query, None).await?.try_collect().await?;
    assert_eq!(found.len(), 1);
    assert!(database.read_throughput(None).await?.is_none());
    database.delete(None).await?;
    assert_eq!(status_of(database.read(None).await), 404);
    Ok(())
}

#[tokio::test]
async fn throughput_decides_the_number_of_physical_partitions() -> Outcome {
    let database = database("partitions").await?;
    for (throughput, partitions) in [(400, 1), (24_000, 4)] {
        let name = format!("partitions-{partitions}");
        let container = container(&database, &name, "/pk", throughput).await?;
        let ranges = container.read_feed_ranges(None).await?;
        assert_eq!(ranges.len(), partitions, "{throughput} RU/s");
    }
    database.delete(None).await?;
    Ok(())
}

#[tokio::test]
async fn a_container_is_made_read_replaced_found_and_deleted() -> Outcome {
    let database = database("container").await?;
    let container = container(&database, "definition", ("/tenant", "/user", "/session"), 400).await?;
    let mut properties = container.read(None).await?.into_model()?;
    let paths: Vec<&str> = properties.partition_key.paths().iter().map(AsRef::as_ref).collect();
    assert_eq!(paths, ["/tenant", "/user", "/session"]);
    assert!(properties.indexing_policy.is_some());
    properties.default_ttl = TimeToLive::Seconds(60);
    let replaced = container.replace(properties, None).await?.into_model()?;
    assert_eq!(replaced.default_ttl, TimeToLive::Seconds(60));
    let twice = ContainerProperties::new("definition", "/other".into());
    assert_eq!(status_of(database.create_container(twice, None).await), 409);
    container.delete(None).await?;
    assert_eq!(status_of(container.read(None).await), 404);
    database.delete(None).await?;
    Ok(())
}

#[tokio::test]
async fn manual_throughput_is_read_and_changed() -> Outcome {
    let database = database("manual").await?;
    let container = container(&database, "manual", "/pk", 500).await?;
    let current = container.read_throughput(None).await?.expect("an offer");
    assert_eq!(current.throughput(), Some(500));
    let changed = container
        .begin_replace_throughput(ThroughputProperties::manual(900), None)
        .await?
        .await?
        .into_model()?;
    assert_eq!(changed.throughput(), Some(900));
    database.delete(None).await?;
    Ok(())
}

#[tokio::test]
async fn autoscale_throughput_is_read_and_changed() -> Outcome {
    let database = database("autoscale").await?;
    let options =
        CreateContainerOptions::default().with_throughput(ThroughputProperties::autoscale(4000, Some(5)));
    let properties = ContainerProperties::new("scaled", "/pk".into());
    database.create_container(properties, Some(options)).await?;
    let container = database.container_client("scaled", None).await?;
    let current = container.read_throughput(None).await?.expect("an offer");
    assert_eq!(current.autoscale_maximum(), Some(4000));
    assert_eq!(current.autoscale_increment(), Some(5));
    let changed = container
        .begin_replace_throughput(ThroughputProperties::autoscale(6000, None), None)
        .await?
        .await?
        .into_model()?;
    assert_eq!(changed.autoscale_maximum(), Some(6000));
    database.delete(None).await?;
    Ok(())
}
