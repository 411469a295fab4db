//! Between Archives: copies, their refreshing and repair, and the hand-over of Originals (clause 2.1).

pub mod handover;
pub mod whole;
