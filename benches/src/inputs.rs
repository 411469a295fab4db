//! The same labels in every run.

use ibi_id::{Host, IbipPrefix, RepositoryPrefix};

/// Labels as the field has them: IPv4 with port 800, hosts of three to five words, whole seconds of
/// 2009 to 2026.
pub struct Inputs {
    pub uuids: Vec<String>,
    pub ulids: Vec<ulid::Ulid>,
    pub ibips: Vec<String>,
    pub reps: Vec<String>,
    pub instants: Vec<ibi_id::Instant>,
}

impl Inputs {
    pub fn new(count: usize) -> Self {
        let mut random = SplitMix(20_090_216);
        let mut inputs = Self { uuids: vec![], ulids: vec![], ibips: vec![], reps: vec![], instants: vec![] };
        for _ in 0..count {
            let wide = u128::from(random.next()) << 64 | u128::from(random.next());
            inputs.uuids.push(uuid::Uuid::from_u128(wide).to_string());
            inputs.ulids.push(ulid::Ulid(wide));
            let seconds = 1_230_768_000 + (random.next() % 567_993_600) as i64;
            let at = ibi_id::Instant::new(
                seconds - seconds % if random.next().is_multiple_of(2) { 60 } else { 1 },
                0,
            )
            .expect("in range");
            inputs.instants.push(at);
            let ip = std::net::Ipv4Addr::from(random.next() as u32);
            inputs.ibips.push(IbipPrefix::new(ip.into(), None).label(at).expect("after 1995"));
            let host = [
                "mtc-m18.sid.inpe.br",
                "banon.dpi.inpe.br",
                "archive.lib.physics.example.edu",
                "m.iconet.com.br",
            ][(random.next() % 4) as usize];
            let prefix = RepositoryPrefix::new(Host::parse(host).expect("a host"), None);
            inputs.reps.push(prefix.label(at).expect("short"));
        }
        inputs
    }
}

/// A small generator with a fixed seed: the same inputs in every run.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
