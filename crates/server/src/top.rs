//! `orrery top`: a live view of the partitions of a container in a terminal.
//!
//! Once a second it asks the management API of a running server what its partitions do, and draws it: budgets against
//! use, refusals, the hottest keys, and a heat map of the key space over time. Everything that is drawn comes from
//! one [`Picture`], so that `--once` can print the same frame as text.

use std::time::{Duration, Instant};

use clap::Args;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::client::{Client, Endpoint};

mod chooser;
mod heat;
mod picture;
mod view;

use chooser::Chooser;
use picture::{Picture, Span};

/// Partitions that PgUp and PgDn pass.
const PAGE: usize = 7;

/// How long one look at the server may take before the view says that it got no answer.
const LOOK_TIME_MAX: Duration = Duration::from_secs(5);

#[derive(Args)]
pub struct Top {
    #[command(flatten)]
    endpoint: Endpoint,

    /// The database of the container to show; by default the busiest container is shown.
    #[arg(long, value_name = "NAME", requires = "container")]
    database: Option<String>,

    #[arg(long, value_name = "NAME", requires = "database")]
    container: Option<String>,

    /// Seconds between two looks.
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=60))]
    interval: u64,

    /// Print one frame as text and end.
    #[arg(long)]
    once: bool,

    /// The size of that frame in columns and lines.
    #[arg(long, value_name = "COLUMNSxLINES", default_value = "80x24", value_parser = size)]
    size: (u16, u16),
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let parsed = text.split_once('x').and_then(|(columns, lines)| {
        let (columns, lines): (u16, u16) = (columns.parse().ok()?, lines.parse().ok()?);
        ((40..=500).contains(&columns) && (10..=500).contains(&lines)).then_some((columns, lines))
    });
    parsed.ok_or_else(|| "must be such as 80x24, from 40x10 to 500x500".to_owned())
}

pub fn run(top: Top) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut session = Session::new(&top);
    if top.once {
        runtime.block_on(session.look());
        // A picture without a server would be an empty one.
        if let Some(error) = session.picture.error.take() {
            anyhow::bail!(error);
        }
        println!("{}", session.text(top.size)?);
        return Ok(());
    }
    let mut terminal = ratatui::init();
    let ended = session.interact(&mut terminal, &runtime, Duration::from_secs(top.interval));
    ratatui::restore();
    ended
}

/// What is shown, and what the user has chosen to see.
pub struct Session {
    client: Client,
    /// Where the server is, for the title.
    place: String,
    chosen: Option<(String, String)>,
    span: Span,
    picture: Picture,
    /// The partition in the table that is marked.
    marked: usize,
    chooser: Option<Chooser>,
}

impl Session {
    fn new(top: &Top) -> Session {
        Session {
            client: Client::new(top.endpoint.clone()),
            place: top.endpoint.endpoint.to_string(),
            chosen: top.database.clone().zip(top.container.clone()),
            span: Span::Minute,
            picture: Picture::default(),
            marked: 0,
            chooser: None,
        }
    }

    /// Asks the server; what goes wrong is shown, and tried again at the next look.
    async fn look(&mut self) {
        let seen = picture::take(&mut self.client, self.chosen.as_ref(), self.span);
        let error = match tokio::time::timeout(LOOK_TIME_MAX, seen).await {
            Ok(Ok(picture)) => {
                self.picture = picture;
                return;
            }
            Ok(Err(error)) => format!("{error:#}"),
            Err(_) => "the server does not answer".to_owned(),
        };
        self.picture.error = Some(error);
    }

    fn interact(
        &mut self,
        terminal: &mut ratatui::DefaultTerminal,
        runtime: &tokio::runtime::Runtime,
        interval: Duration,
    ) -> anyhow::Result<()> {
        loop {
            runtime.block_on(self.look());
            let next = Instant::now() + interval;
            loop {
                terminal.draw(|frame| view::draw(self, frame))?;
                if !event::poll(next.saturating_duration_since(Instant::now()))? {
                    break;
                }
                match event::read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => match self.press(key) {
                        Then::Stay => {}
                        Then::Look => break,
                        Then::Leave => return Ok(()),
                    },
                    _ => {}
                }
            }
        }
    }

    fn press(&mut self, key: KeyEvent) -> Then {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Then::Leave;
        }
        if let Some(chooser) = &mut self.chooser {
            return match key.code {
                KeyCode::Up => chooser.up(),
                KeyCode::Down => chooser.down(),
                KeyCode::Enter => {
                    self.chosen = chooser.chosen();
                    (self.chooser, self.marked) = (None, 0);
                    Then::Look
                }
                _ => {
                    self.chooser = None;
                    Then::Stay
                }
            };
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Then::Leave,
            KeyCode::Up => self.mark(self.marked.saturating_sub(1)),
            KeyCode::Down => self.mark(self.marked + 1),
            KeyCode::PageUp => self.mark(self.marked.saturating_sub(PAGE)),
            KeyCode::PageDown => self.mark(self.marked + PAGE),
            KeyCode::Home => self.mark(0),
            KeyCode::End => self.mark(usize::MAX),
            KeyCode::Left | KeyCode::Right => {
                self.span = self.span.other();
                return Then::Look;
            }
            KeyCode::Char('c') => self.chooser = Some(Chooser::new(&self.picture)),
            _ => {}
        }
        Then::Stay
    }

    fn mark(&mut self, place: usize) {
        self.marked = place.min(self.picture.partitions.len().saturating_sub(1));
    }

    /// One frame as text.
    fn text(&self, (columns, lines): (u16, u16)) -> anyhow::Result<String> {
        let mut terminal = Terminal::new(TestBackend::new(columns, lines))?;
        terminal.draw(|frame| view::draw(self, frame))?;
        let buffer = terminal.backend().buffer();
        let line = |y: u16| -> String {
            let cells = (0..columns).map(|x| buffer[(x, y)].symbol());
            cells.collect::<String>().trim_end().to_owned()
        };
        Ok((0..lines).map(line).collect::<Vec<_>>().join("\n"))
    }
}

/// What a key leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum Then {
    Stay,
    Look,
    Leave,
}
