//! An analysis for a person: a table, or one line.

use std::fmt::Write as _;

use super::report::{Analysis, Certain, MoveReport, Verdict};
use crate::game::WdlPov;

/// How a table looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Moves shown; the table says how many are left out.
    pub top: usize,
    /// Characters of a line, at least 60 or so; lines of moves are cut to it.
    pub width: usize,
    /// Colours by the codes of terminals.
    pub color: bool,
}

const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";

impl Look {
    fn paint(self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// The analysis below the drawn position `board`.
pub fn table(analysis: &Analysis, board: &str, look: Look) -> String {
    let mut out = String::new();
    if !analysis.source.is_empty() {
        let _ = writeln!(out, "{}", look.paint(BOLD, &analysis.source));
    }
    let _ =
        writeln!(out, "{}\n\n{}, {} to move: {}", board.trim_end(), analysis.game, analysis.to_move, analysis.position);
    let _ = writeln!(out, "{}: {}", analysis.player, effort(analysis));
    let certain = analysis.proven.map_or_else(String::new, |proven| {
        format!("{} {}; ", analysis.to_move, look.paint(color_of(proven), &words(proven, true)))
    });
    let WdlPov { win, draw, loss } = analysis.value;
    let [win, draw, loss] = [win, draw, loss].map(|share| 100.0 * share);
    let _ =
        writeln!(out, "{certain}value for {}: {win:.1} % win, {draw:.1} % draw, {loss:.1} % loss\n", analysis.to_move);
    out += &rows(analysis, look);
    if let Some(remark) = analysis.ended.and_then(|ended| ended.remark()) {
        let _ = writeln!(out, "{}", look.paint(YELLOW, remark));
    }
    out
}

/// What was done.
fn effort(analysis: &Analysis) -> String {
    format!(
        "{} simulations in {:.2} s, {:.0} a second, depth {} (mean {:.1})",
        analysis.simulations, analysis.seconds, analysis.simulations_per_second, analysis.depth, analysis.mean_depth
    )
}

fn rows(analysis: &Analysis, look: Look) -> String {
    let shown = &analysis.moves[..look.top.min(analysis.moves.len())];
    let has_priors = shown.iter().any(|m| m.prior.is_some());
    let results: Vec<String> = shown.iter().map(|m| m.proven.map_or_else(String::new, |p| words(p, false))).collect();
    let widest = |least: usize, texts: &mut dyn Iterator<Item = usize>| texts.fold(least, usize::max);
    let move_width = widest(4, &mut shown.iter().map(|m| m.text.chars().count()));
    let visit_width = widest(6, &mut shown.iter().map(|m| m.visits.to_string().len()));
    let result_width = match widest(0, &mut results.iter().map(String::len)) {
        0 => 0,
        width => width.max(6) + 2,
    };
    let percent = |share: f64| format!("{:6.1}", 100.0 * share);
    let row = |number: &str, name: &str, visits: &str, share: &str, prior: &str, wdl: [&str; 3]| {
        let prior = if has_priors { format!(" {prior:>6}") } else { String::new() };
        let [win, draw, loss] = wdl;
        format!(
            "{number:>3}  {name:move_width$}  {visits:>visit_width$} {share:>6}{prior}  {win:>6}{draw:>6}{loss:>6}  "
        )
    };
    let head = row("#", "move", "visits", "share", "prior", ["win", "draw", "loss"]);
    let room = look.width.saturating_sub(head.chars().count() + result_width).max(10);
    let result_head = if result_width == 0 { "" } else { "result" };
    let mut out = look.paint(DIM, format!("{head}{result_head:result_width$}line").trim_end()) + "\n";
    for (index, (m, result)) in shown.iter().zip(&results).enumerate() {
        let wdl = [m.value.win, m.value.draw, m.value.loss].map(|share| percent(share.into()));
        let [win, draw, loss] = &wdl;
        let prior = m.prior.map_or_else(String::new, |prior| percent(prior.into()));
        let number = (index + 1).to_string();
        let text = row(&number, &m.text, &m.visits.to_string(), &percent(m.share), &prior, [win, draw, loss]);
        let result = format!("{result:result_width$}");
        let result = m.proven.map_or(result.clone(), |proven| look.paint(color_of(proven), &result));
        let text = if index == 0 { look.paint(BOLD, &text) } else { text };
        out += format!("{text}{result}{}", line(m, room)).trim_end();
        out += "\n";
    }
    let left_out = analysis.moves.len() - shown.len();
    if left_out > 0 {
        let moves = if left_out == 1 { "move" } else { "moves" };
        let _ = writeln!(
            out,
            "{}",
            look.paint(DIM, &format!("     and {left_out} more {moves} (--top {})", analysis.moves.len()))
        );
    }
    out
}

/// The move's line, cut where it would take more than `room` characters.
fn line(m: &MoveReport, room: usize) -> String {
    let mut out = String::new();
    for (index, text) in m.line.iter().enumerate() {
        let rest = if index + 1 < m.line.len() { " ...".len() } else { 0 };
        if index > 0 && out.chars().count() + 1 + text.chars().count() + rest > room {
            return out + " ...";
        }
        if index > 0 {
            out.push(' ');
        }
        out += text;
    }
    out
}

/// A certain result in words; `in_full` with the unit.
fn words(certain: Certain, in_full: bool) -> String {
    let unit = match certain.plies {
        _ if !in_full => "",
        Some(1) => " ply",
        _ => " plies",
    };
    match (certain.result, certain.plies) {
        (Verdict::Draw, _) if in_full => "draws for certain".to_owned(),
        (Verdict::Draw, _) => "draw".to_owned(),
        (Verdict::Win, plies) => format!("wins in {}{unit}", plies.unwrap_or(0)),
        (Verdict::Loss, plies) => format!("loses in {}{unit}", plies.unwrap_or(0)),
    }
}

fn color_of(certain: Certain) -> &'static str {
    match certain.result {
        Verdict::Win => GREEN,
        Verdict::Draw => YELLOW,
        Verdict::Loss => RED,
    }
}

/// How far a search is, on one line.
pub fn progress(analysis: &Analysis, look: Look) -> String {
    let Some(best) = analysis.moves.first() else { return String::new() };
    let result = best.proven.map_or_else(String::new, |proven| format!(" ({})", words(proven, false)));
    let [win, draw, loss] = [best.value.win, best.value.draw, best.value.loss].map(|share| 100.0 * share);
    let told = format!(
        "{:.1} s: {} simulations, {:.0} a second, depth {}; {} {:.1} % of visits{result}, {win:.1} / {draw:.1} / {loss:.1}; ",
        analysis.seconds,
        analysis.simulations,
        analysis.simulations_per_second,
        analysis.depth,
        best.text,
        100.0 * best.share,
    );
    let room = look.width.saturating_sub(told.chars().count()).max(10);
    told + &line(best, room)
}
