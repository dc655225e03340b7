//! A document next to an earlier one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use super::document::{Document, Row, RowName};
use super::figure::text;
use super::signature::Part;

/// Whether two signatures are the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "are", rename_all = "lowercase")]
pub enum Agreement {
    /// Every fixed search finds the same.
    Equal,
    /// Some do not.
    Different {
        /// Which ones: `uttt puct`.
        parts: Vec<String>,
    },
    /// One of the documents, or both, has no signature.
    Unknown,
}

/// A row in both documents.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Which row.
    #[serde(flatten)]
    pub row: RowName,
    /// Its value in the earlier document.
    pub old: f64,
    /// Its value now.
    pub new: f64,
    /// `new / old`; `None` where `old` is 0.
    pub ratio: Option<f64>,
}

/// What has changed since an earlier document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the earlier one.
    pub with: String,
    /// When it was made.
    pub date: String,
    /// What makes ratios doubtful: another machine, engine or length of measurement.
    pub notes: Vec<String>,
    /// Whether behaviour is the same.
    pub signature: Agreement,
    /// The rows in both, in the order of the newer.
    pub rows: Vec<Ratio>,
    /// Rows that the earlier one lacks.
    pub only_new: Vec<RowName>,
    /// Rows that the newer one lacks.
    pub only_old: Vec<RowName>,
}

impl Comparison {
    /// Compares `new` with `old`, which is called `with`.
    pub fn new(with: &str, old: &Document, new: &Document) -> Self {
        let mut before: BTreeMap<RowName, &Row> = old.rows.iter().map(|row| (row.key(), row)).collect();
        let (mut rows, mut only_new) = (Vec::new(), Vec::new());
        for row in &new.rows {
            match before.remove(&row.key()) {
                Some(earlier) => {
                    let (old, new) = (earlier.value, row.value);
                    rows.push(Ratio { row: row.key(), old, new, ratio: (old != 0.0).then(|| new / old) });
                }
                None => only_new.push(row.key()),
            }
        }
        let only_old = old.rows.iter().map(Row::key).filter(|key| before.contains_key(key)).collect();
        Self {
            with: with.to_owned(),
            date: old.date.clone(),
            notes: notes(old, new),
            signature: agreement(old, new),
            rows,
            only_new,
            only_old,
        }
    }

    /// The ratio of a row in words.
    pub(super) fn ratio_of(&self, key: &RowName) -> String {
        match self.rows.iter().find(|ratio| ratio.row == *key) {
            Some(Ratio { ratio: Some(ratio), .. }) => format!("x {ratio:.3}"),
            Some(Ratio { old, .. }) => format!("was {}", text(*old)),
            None => "new".to_owned(),
        }
    }
}

fn agreement(old: &Document, new: &Document) -> Agreement {
    let (Some(old), Some(new)) = (&old.signature, &new.signature) else { return Agreement::Unknown };
    if old.hash == new.hash {
        return Agreement::Equal;
    }
    let in_both = |part: &Part| old.parts.contains(part) && new.parts.contains(part);
    let all = old.parts.iter().chain(&new.parts);
    let parts: BTreeSet<&String> = all.filter(|part| !in_both(part)).map(|part| &part.name).collect();
    Agreement::Different { parts: parts.into_iter().cloned().collect() }
}

/// What the two do not have in common, though ratios suppose it.
fn notes(old: &Document, new: &Document) -> Vec<String> {
    let texts = |document: &Document| {
        let machine = &document.machine;
        [
            ("version", document.version.clone()),
            ("machine", format!("{}, {} threads", machine.cpu, machine.cores)),
            ("engine", document.engine.clone().unwrap_or_default()),
            ("measurement", format!("{} x {} s", document.repeats, document.seconds)),
        ]
    };
    let pairs = texts(old).into_iter().zip(texts(new)).filter(|(old, new)| old != new);
    pairs.map(|((what, old), (_, new))| format!("another {what}: {old} then, {new} now")).collect()
}

impl fmt::Display for Comparison {
    /// All but the ratios, which stand beside the rows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "x: new / old, compared with {} of {}", self.with, self.date)?;
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))?;
        match &self.signature {
            Agreement::Equal => writeln!(f, "signature: equal")?,
            Agreement::Different { parts } => writeln!(f, "signature: DIFFERENT in {}", parts.join(", "))?,
            Agreement::Unknown => writeln!(f, "signature: not known in both")?,
        }
        for (where_to, keys) in [("here", &self.only_new), ("there", &self.only_old)] {
            for RowName { group, name, unit } in keys {
                writeln!(f, "only {where_to}: {}, {name} ({unit})", group.name())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Figure, Group, Measure, Signature};

    fn document(rows: &[(&str, f64)], parts: &[(&str, &str)]) -> Document {
        let row = |&(name, value): &(&str, f64)| {
            let Figure { value, low, high } = Figure::exact(value);
            let (name, unit) = (name.to_owned(), "games/s".to_owned());
            Row { group: Group::Rules, name, value, unit, low, high }
        };
        let part = |&(name, hash): &(&str, &str)| Part { name: name.to_owned(), hash: hash.to_owned() };
        let parts: Vec<Part> = parts.iter().map(part).collect();
        let hash = parts.iter().map(|part| &part.hash[..]).collect();
        let signature = (!parts.is_empty()).then_some(Signature { hash, parts });
        Document {
            rows: rows.iter().map(row).collect(),
            signature,
            ..Document::new(Measure { seconds: 1.0, repeats: 3 })
        }
    }

    #[test]
    fn rows_are_matched_by_name() {
        let old = document(&[("a", 10.0), ("b", 0.0), ("gone", 1.0)], &[]);
        let mut new = document(&[("come", 1.0), ("b", 5.0), ("a", 15.0)], &[]);
        let comparison = Comparison::new("old.json", &old, &new);
        let found: Vec<_> = comparison.rows.iter().map(|ratio| (&ratio.row.name[..], ratio.ratio)).collect();
        assert_eq!(found, [("b", None), ("a", Some(1.5))]);
        let names = |keys: &[RowName]| keys.iter().map(|key| key.name.clone()).collect::<Vec<_>>();
        assert_eq!(
            (names(&comparison.only_new), names(&comparison.only_old)),
            (vec!["come".into()], vec!["gone".into()])
        );
        assert_eq!((&comparison.notes[..], &comparison.signature), (&[][..], &Agreement::Unknown));
        new.comparison = Some(comparison);
        let text = new.to_string();
        for part in ["x 1.500", "was 0", "only here: rules, come", "only there: rules, gone", "not known in both"] {
            assert!(text.contains(part), "{part} is missing:\n{text}");
        }
        // Another unit is another row.
        new.rows[2].unit = "nodes/s".to_owned();
        assert_eq!(Comparison::new("old.json", &old, &new).rows.len(), 1);
    }

    #[test]
    fn signatures_agree_or_are_traced() {
        let old = document(&[], &[("uttt puct", "1"), ("uttt gumbel", "2"), ("hex puct", "3")]);
        assert_eq!(Comparison::new("", &old, &old.clone()).signature, Agreement::Equal);
        let new = document(&[], &[("uttt puct", "1"), ("uttt gumbel", "5"), ("go puct", "3")]);
        let parts = ["go puct", "hex puct", "uttt gumbel"].map(str::to_owned).to_vec();
        let comparison = Comparison::new("", &old, &new);
        assert_eq!(comparison.signature, Agreement::Different { parts });
        assert!(comparison.to_string().contains("DIFFERENT in go puct, hex puct, uttt gumbel"));
        assert_eq!(Comparison::new("", &old, &document(&[], &[])).signature, Agreement::Unknown);
    }

    #[test]
    fn what_makes_ratios_doubtful_is_said() {
        let old = document(&[], &[]);
        let mut new = old.clone();
        new.machine.cores += 1;
        new.seconds = 2.0;
        let notes = Comparison::new("", &old, &new).notes;
        assert!(
            notes.len() == 2 && notes[0].starts_with("another machine") && notes[1].contains("3 x 2 s now"),
            "{notes:?}"
        );
    }
}
