//! Who the hostile Archive is, and whom it knows.

/// Its service and key, where it listens, its resolver, and an honest Archive that it may name.
pub struct HostileIdentity {
    pub behaviour: String,
    pub address: String,
    pub service: String,
    pub key: String,
    pub resolver: String,
    pub resolver_service: String,
    /// Where an honest Archive is, and the label of its service.
    pub victim: String,
    pub victim_service: String,
    /// An item of the honest Archive.
    pub victim_label: String,
    /// Labels that readers ask for, separated by commas: a feed claims them.
    pub labels: String,
}

impl HostileIdentity {
    pub fn read(arguments: &[String]) -> Result<Self, String> {
        let mut identity = Self {
            behaviour: String::new(),
            address: String::new(),
            service: String::new(),
            key: String::new(),
            resolver: String::new(),
            resolver_service: "J8LNKB5R7W/3FUQHC5".to_owned(),
            victim: "192.0.2.1".to_owned(),
            victim_service: "victim.test/archive/2020/01.01.00.00".to_owned(),
            victim_label: "victim.test/archive/2020/01.01.00.01".to_owned(),
            labels: String::new(),
        };
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            let place = match name.as_str() {
                "--behaviour" => &mut identity.behaviour,
                "--listen" => &mut identity.address,
                "--service" => &mut identity.service,
                "--key" => &mut identity.key,
                "--resolver" => &mut identity.resolver,
                "--resolver-service" => &mut identity.resolver_service,
                "--victim" => &mut identity.victim,
                "--victim-service" => &mut identity.victim_service,
                "--victim-label" => &mut identity.victim_label,
                "--labels" => &mut identity.labels,
                other => return Err(format!("`{other}` is no option")),
            };
            place.clone_from(rest.next().ok_or_else(|| format!("{name} has no value"))?);
        }
        for (name, value) in [
            ("--behaviour", &identity.behaviour),
            ("--listen", &identity.address),
            ("--service", &identity.service),
            ("--key", &identity.key),
            ("--resolver", &identity.resolver),
        ] {
            if value.is_empty() {
                return Err(format!("{name} is missing"));
            }
        }
        Ok(identity)
    }

    /// The host of its address, without the port.
    pub fn host(&self) -> &str {
        self.address.rsplit_once(':').map_or(&self.address, |(host, _)| host)
    }

    /// The labels that its feed claims.
    pub fn claimed_labels(&self) -> Vec<&str> {
        let labels = if self.labels.is_empty() { &self.victim_label } else { &self.labels };
        labels.split(',').collect()
    }

    /// A label of its own, under the prefix of its service: one for each number.
    pub fn own_label(&self, number: u64) -> String {
        let prefix: Vec<&str> = self.service.split('/').take(2).collect();
        let (minute, hour, day) = (number % 60, number / 60 % 24, number / 1440 % 28 + 1);
        let month = number / 40_320 % 12 + 1;
        format!("{}/2020/{month:02}.{day:02}.{hour:02}.{minute:02}", prefix.join("/"))
    }

    /// The number of one of its own labels.
    pub fn own_number(&self, label: &str) -> Option<u64> {
        let first = self.own_label(0);
        let date = label.strip_prefix(first.strip_suffix("01.01.00.00")?)?;
        let parts: Vec<u64> = date.split('.').filter_map(|part| part.parse().ok()).collect();
        let [month, day, hour, minute] = parts[..] else { return None };
        Some(month.checked_sub(1)? * 40_320 + day.checked_sub(1)? * 1440 + hour * 60 + minute)
    }
}
