//! The tokens of RNTBD: every header of a frame has a number, and a type in which its value is written.
//!
//! This is the one table of them, for both directions. Numbers that are not here are skipped by their types, as all
//! implementations do, so that newer clients may say more than this server understands.

/// How a value is written. All numbers are little-endian, and texts are UTF-8 behind their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Byte = 0,
    UShort = 1,
    ULong = 2,
    Long = 3,
    ULongLong = 4,
    LongLong = 5,
    Guid = 6,
    SmallString = 7,
    String = 8,
    ULongString = 9,
    SmallBytes = 10,
    Bytes = 11,
    ULongBytes = 12,
    Float = 13,
    Double = 14,
}

/// How many bytes a value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Fixed(usize),
    /// A length of so many bytes stands in front.
    Counted(usize),
}

impl Kind {
    pub fn of(code: u8) -> Option<Kind> {
        use Kind::*;
        const ALL: [Kind; 15] = [
            Byte,
            UShort,
            ULong,
            Long,
            ULongLong,
            LongLong,
            Guid,
            SmallString,
            String,
            ULongString,
            SmallBytes,
            Bytes,
            ULongBytes,
            Float,
            Double,
        ];
        ALL.get(usize::from(code)).copied()
    }

    pub fn size(self) -> Size {
        match self {
            Kind::Byte => Size::Fixed(1),
            Kind::UShort => Size::Fixed(2),
            Kind::ULong | Kind::Long | Kind::Float => Size::Fixed(4),
            Kind::ULongLong | Kind::LongLong | Kind::Double => Size::Fixed(8),
            Kind::Guid => Size::Fixed(16),
            Kind::SmallString | Kind::SmallBytes => Size::Counted(1),
            Kind::String | Kind::Bytes => Size::Counted(2),
            Kind::ULongString | Kind::ULongBytes => Size::Counted(4),
        }
    }
}

/// The tokens of one direction.
pub(crate) trait Numbered: Copy {
    fn of(id: u16) -> Option<Self>;

    fn id(self) -> u16;

    fn kind(self) -> Kind;
}

macro_rules! tokens {
    ($($(#[$about:meta])* $direction:ident { $($id:literal $name:ident $kind:ident;)* })*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub(crate) enum $direction { $($name = $id,)* }

        impl Numbered for $direction {
            fn of(id: u16) -> Option<$direction> {
                match id {
                    $($id => Some($direction::$name),)*
                    _ => None,
                }
            }

            fn id(self) -> u16 {
                self as u16
            }

            fn kind(self) -> Kind {
                match self {
                    $($direction::$name => Kind::$kind,)*
                }
            }
        }
    )*};
}

tokens! {
    /// What a client says when it opens a connection.
    Hello {
        0x0000 ProtocolVersion ULong;
        0x0001 ClientVersion SmallString;
        0x0002 UserAgent SmallString;
        0x0003 CallerId Byte;
        0x0004 EnableChannelMultiplexing Byte;
        0x0005 ThinProxySignature String;
        0x0006 ThinProxySignatureDate SmallString;
        0x0007 MutualTlsAuthMode Byte;
    }
    /// What it is told then.
    Welcome {
        0x0000 ProtocolVersion ULong;
        0x0001 ClientVersion SmallString;
        0x0002 ServerAgent SmallString;
        0x0003 ServerVersion SmallString;
        0x0004 IdleTimeoutInSeconds ULong;
        0x0005 UnauthenticatedTimeoutInSeconds ULong;
    }
    /// The headers of a request.
    Asked {
        0x0000 ResourceId Bytes;
        0x0001 AuthorizationToken String;
        0x0002 PayloadPresent Byte;
        0x0003 Date SmallString;
        0x0004 PageSize ULong;
        0x0005 SessionToken String;
        0x0006 ContinuationToken String;
        0x0007 IndexingDirective Byte;
        0x0008 Match String;
        0x0009 PreTriggerInclude String;
        0x000A PostTriggerInclude String;
        0x000E PreTriggerExclude String;
        0x000F PostTriggerExclude String;
        0x0010 ConsistencyLevel Byte;
        0x0011 EntityId String;
        0x0013 ReplicaPath String;
        0x0014 ResourceTokenExpiry ULong;
        0x0015 DatabaseName String;
        0x0016 CollectionName String;
        0x0017 DocumentName String;
        0x0018 AttachmentName String;
        0x0019 UserName String;
        0x001A PermissionName String;
        0x001B StoredProcedureName String;
        0x001C UserDefinedFunctionName String;
        0x001D TriggerName String;
        0x001E EnableScanInQuery Byte;
        0x0020 ConflictName String;
        0x0026 ProfileRequest Byte;
        0x0027 EnableLowPrecisionOrderBy Byte;
        0x0028 ClientVersion SmallString;
        0x0029 CanCharge Byte;
        0x002A CanThrottle Byte;
        0x002B PartitionKey String;
        0x002C PartitionKeyRangeId String;
        0x0033 SupportSpatialLegacyCoordinates Byte;
        0x0035 CollectionRid String;
        0x0036 PartitionKeyRangeName String;
        0x003B FilterBySchemaRid String;
        0x003C UsePolygonsSmallerThanAHemisphere Byte;
        0x003E EnableLogging Byte;
        0x003F AIm String;
        0x0040 PopulateQuotaInfo Byte;
        0x0041 DisableRuPerMinuteUsage Byte;
        0x0042 PopulateQueryMetrics Byte;
        0x0043 ResponseContinuationTokenLimitInKb ULong;
        0x0044 PopulatePartitionStatistics Byte;
        0x0047 IfModifiedSince String;
        0x0048 PopulateCollectionThroughputInfo Byte;
        0x0049 RemainingTimeInMsOnClientRequest ULong;
        0x004A ClientRetryAttemptCount ULong;
        0x004B TargetLsn LongLong;
        0x004C TargetGlobalCommittedLsn LongLong;
        0x004D TransportRequestId ULong;
        0x0052 IsReadOnlyScript Byte;
        0x0054 ForceQueryScan Byte;
        0x0057 ExcludeSystemProperties Byte;
        0x0058 BinaryId Bytes;
        0x0059 TimeToLiveInSeconds ULong;
        0x005A EffectivePartitionKey Bytes;
        0x005E EnumerationDirection Byte;
        0x005F StartId Bytes;
        0x0060 EndId Bytes;
        0x0062 StartEpk Bytes;
        0x0063 EndEpk Bytes;
        0x0064 ReadFeedKeyType Byte;
        0x0065 ContentSerializationFormat Byte;
        0x0066 AllowTentativeWrites Byte;
        0x0070 IncludeTentativeWrites Byte;
        0x0073 IsBatchAtomic Byte;
        0x0074 ShouldBatchContinueOnError Byte;
        0x0075 IsBatchOrdered Byte;
        0x0079 MaxPollingIntervalMilliseconds ULong;
        0x0080 ClientEncryptionKeyName String;
        0x0082 ReturnPreference Byte;
        0x0087 IsClientEncrypted Byte;
        0x0096 RetriableWriteRequestId Bytes;
        0x0097 IsRetriedWriteRequest Byte;
        0x0098 RetriableWriteRequestStartTimestamp ULongLong;
        0x009A ChangeFeedStartFullFidelityIfNoneMatch String;
        0x009D IntendedCollectionRid String;
        0x00A2 SdkSupportedCapabilities ULong;
        0x00A9 PopulateIndexMetrics Byte;
        0x00AC ShouldReturnCurrentServerDateTime Byte;
        0x00B0 CorrelatedActivityId Guid;
        0x00B2 ChangeFeedWireFormatVersion String;
        0x00BF PriorityLevel Byte;
        0x00C2 PopulateIndexMetricsV2 Byte;
        0x00C4 SupportedSerializationFormats Byte;
        0x00C8 OptimisticDirectExecute Byte;
        0x00DA PopulateQueryAdvice Byte;
        0x00DB ThroughputBucket Byte;
        0x00E5 ReadGlobalCommittedData Byte;
        0x00E7 WorkloadId UShort;
        0x00EF ShouldProcessOnlyInHubRegion Byte;
        0x00FE ReadConsistencyStrategy Byte;
        0x00FF SupportedQueryFeatures String;
        0x0100 QueryVersion SmallString;
        0x0101 SupportedSerializationFeatures UShort;
    }
    /// The headers of an answer.
    Told {
        0x0000 PayloadPresent Byte;
        0x0002 LastStateChangeDateTime SmallString;
        0x0003 ContinuationToken String;
        0x0004 Etag String;
        0x000C RetryAfterMilliseconds ULong;
        0x000D IndexingDirective Byte;
        0x000E StorageMaxResourceQuota String;
        0x000F StorageResourceQuotaUsage String;
        0x0010 SchemaVersion SmallString;
        0x0013 Lsn LongLong;
        0x0014 ItemCount ULong;
        0x0015 RequestCharge Double;
        0x0017 OwnerFullName String;
        0x0018 OwnerId String;
        0x0019 DatabaseAccountId String;
        0x001A QuorumAckedLsn LongLong;
        0x001B RequestValidationFailure Byte;
        0x001C SubStatus ULong;
        0x001D CollectionUpdateProgress ULong;
        0x001E CurrentWriteQuorum ULong;
        0x001F CurrentReplicaSetSize ULong;
        0x0020 CollectionLazyIndexProgress ULong;
        0x0021 PartitionKeyRangeId String;
        0x0025 LogResults String;
        0x0026 XpRole ULong;
        0x0028 QueryMetrics String;
        0x0029 GlobalCommittedLsn LongLong;
        0x0030 NumberOfReadRegions ULong;
        0x0031 OfferReplacePending Byte;
        0x0032 ItemLsn LongLong;
        0x0035 TransportRequestId ULong;
        0x0036 ShareThroughput Byte;
        0x0038 DisableRntbdChannel Byte;
        0x0039 ServerDateTimeUtc SmallString;
        0x003A LocalLsn LongLong;
        0x003B QuorumAckedLocalLsn LongLong;
        0x003C ItemLocalLsn LongLong;
        0x003D HasTentativeWrites Byte;
        0x003E SessionToken String;
        0x0042 MinimumRusForOffer ULong;
        0x0044 IndexUtilization String;
        0x0045 QueryExecutionInfo String;
        0x0047 ResourceName String;
        0x0048 TimeToLiveInSeconds LongLong;
        0x0051 BackendRequestDurationMilliseconds Double;
        0x0052 CorrelatedActivityId Guid;
        0x0055 PendingPkDelete Byte;
        0x005E ChangeFeedInfo String;
        0x0061 MaxContentLength ULong;
        0x0063 PhysicalPartitionId String;
        0x0066 RequiresDistribution Byte;
        0x0075 QueryAdvice String;
    }
}
