//! Dublin Core as XML: the `oai_dc` document of OAI-PMH is written, and more than that is read.

use std::fmt::Write as _;

use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::ResolveResult;
use quick_xml::reader::NsReader;

use super::{
    DublinCoreError, Element, LanguageTag, MAX_XML_DEPTH, MetadataStatement, push_statement, with_line_number,
};
use ibi_protocol::untrusted_text::{quote_untrusted, truncate_untrusted};

const OAI_DC_NAMESPACE: &str = "http://www.openarchives.org/OAI/2.0/oai_dc/";
const DC_ELEMENTS_NAMESPACE: &str = "http://purl.org/dc/elements/1.1/";
const DC_TERMS_NAMESPACE: &str = "http://purl.org/dc/terms/";

pub(super) fn write(statements: &[MetadataStatement]) -> String {
    let values: usize = statements.iter().map(|statement| statement.value.len() + 64).sum();
    let mut out = String::with_capacity(values + 512);
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<oai_dc:dc xmlns:oai_dc=\"{OAI_DC_NAMESPACE}\" xmlns:dc=\"{DC_ELEMENTS_NAMESPACE}\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"{OAI_DC_NAMESPACE} http://www.openarchives.org/OAI/2.0/oai_dc.xsd\">\n"
    );
    for MetadataStatement { element, language, value } in statements {
        let _ = match language {
            None => write!(out, "  <dc:{element}>"),
            // Letters, digits and hyphens: nothing to escape.
            Some(language) => write!(out, "  <dc:{element} xml:lang=\"{language}\">"),
        };
        escape(value, &mut out);
        let _ = writeln!(out, "</dc:{element}>");
    }
    out.push_str("</oai_dc:dc>\n");
    out
}

/// What would be read as markup, and what readers might take for white space, becomes a reference.
fn escape(value: &str, out: &mut String) {
    let mut rest = value;
    while let Some(at) =
        rest.find(|c: char| matches!(c, '&' | '<' | '>' | '\u{2028}' | '\u{2029}') || c.is_control())
    {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let mut characters = special.chars();
        match characters.next() {
            Some('&') => out.push_str("&amp;"),
            Some('<') => out.push_str("&lt;"),
            Some('>') => out.push_str("&gt;"),
            Some(c) => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            None => {}
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
}

pub(super) fn read(text: &str) -> Result<Vec<MetadataStatement>, DublinCoreError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = NsReader::from_str(text);
    let mut reading = DublinCoreReader::default();
    loop {
        let (error, position) = match reader.read_event() {
            Ok(Event::Eof) => match reading.finish() {
                Ok(statements) => return Ok(statements),
                Err(error) => (error, reader.buffer_position()),
            },
            Ok(event) => match reading.handle_event(event, &reader) {
                Ok(()) => continue,
                Err(error) => (error, reader.buffer_position()),
            },
            Err(error) => (malformed_xml(&error), reader.error_position()),
        };
        let before = text.bytes().take(usize::try_from(position).unwrap_or(usize::MAX));
        return with_line_number(before.filter(|byte| *byte == b'\n').count() + 1, Err(error));
    }
}

/// How far reading has come.
#[derive(Default)]
struct DublinCoreReader {
    statements: Vec<MetadataStatement>,
    /// The language of each element that is open.
    open: Vec<Option<LanguageTag>>,
    /// The element of Dublin Core that is open, how deep it lies, and the text in it.
    value: Option<(Element, usize, String)>,
    /// Whether there was an outermost element.
    begun: bool,
}

impl DublinCoreReader {
    fn handle_event(&mut self, event: Event<'_>, reader: &NsReader<&[u8]>) -> Result<(), DublinCoreError> {
        match event {
            Event::Start(start) => self.start(&start, reader),
            // Without content there is no value, but it has to be well-formed all the same.
            Event::Empty(start) => {
                self.start(&start, reader)?;
                self.end()
            }
            Event::End(_) => self.end(),
            Event::Text(text) => self.text(&text.xml10_content()),
            Event::CData(text) => self.text(&text.xml10_content()),
            Event::GeneralRef(reference) => self.reference(&reference),
            Event::DocType(_) => Err(xml_error("a DOCTYPE is not allowed: remove it")),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::Eof => Ok(()),
        }
    }

    fn finish(self) -> Result<Vec<MetadataStatement>, DublinCoreError> {
        match (self.begun, self.open.is_empty()) {
            (false, _) => Err(xml_error("it has no element")),
            (true, false) => {
                Err(xml_error("it ends before its outermost element does: take care that it is whole"))
            }
            (true, true) => Ok(self.statements),
        }
    }

    fn start(&mut self, start: &BytesStart<'_>, reader: &NsReader<&[u8]>) -> Result<(), DublinCoreError> {
        if self.open.is_empty() && self.begun {
            return Err(xml_error(
                "after the end of its outermost element there is another: put both into one",
            ));
        }
        if self.open.len() == MAX_XML_DEPTH {
            return Err(xml_error(format!("elements lie more than {MAX_XML_DEPTH} deep")));
        }
        self.begun = true;
        let mut language = self.open.last().cloned().flatten();
        // Looking for attributes that are there twice takes time that grows with their square.
        for attribute in start.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| malformed_xml(&error))?;
            if attribute.key.as_ref() == "xml:lang" {
                let text = attribute.value.trim();
                language =
                    if text.contains('_') { text.replace('_', "-").parse() } else { text.parse() }.ok();
            }
        }
        self.open.push(language);
        if self.value.is_some() {
            return Ok(());
        }
        if let Some(element) = Element::named(start.local_name().as_ref()) {
            match reader.resolver().resolve_element(start.name()).0 {
                ResolveResult::Bound(namespace)
                    if matches!(namespace.0, DC_ELEMENTS_NAMESPACE | DC_TERMS_NAMESPACE) =>
                {
                    self.value = Some((element, self.open.len(), String::new()));
                }
                ResolveResult::Unknown(prefix) => {
                    let prefix = quote_untrusted(&prefix);
                    return Err(xml_error(format!(
                        "the prefix of <{prefix}:{element}> is not declared: for Dublin Core, add \
                         xmlns:{prefix}=\"{DC_ELEMENTS_NAMESPACE}\" to the outermost element"
                    )));
                }
                _ => {}
            }
        } else if matches!(reader.resolver().resolve_element(start.name()).0,
            ResolveResult::Bound(namespace) if namespace.0 == DC_ELEMENTS_NAMESPACE)
        {
            // Left out without a word, it would be missed later.
            return Err(DublinCoreError::Element { given: quote_untrusted(start.local_name().as_ref()) });
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), DublinCoreError> {
        let language = self.open.pop().flatten();
        if let Some((element, _, value)) = self.value.take_if(|(_, depth, _)| *depth > self.open.len())
            && !value.trim().is_empty()
        {
            push_statement(&mut self.statements, MetadataStatement::new(element, language, value)?)?;
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), DublinCoreError> {
        match &mut self.value {
            Some((_, _, value)) => value.push_str(text),
            None if self.open.is_empty() && !text.trim().is_empty() => {
                return Err(xml_error("there is text outside the root element: remove it"));
            }
            None => {}
        }
        Ok(())
    }

    fn reference(&mut self, reference: &BytesRef<'_>) -> Result<(), DublinCoreError> {
        if let Some(character) = reference.resolve_char_ref().map_err(|error| malformed_xml(&error))? {
            self.text(character.encode_utf8(&mut [0; 4]))
        } else if let Some(text) = resolve_xml_entity(reference) {
            self.text(text)
        } else {
            Err(xml_error(format!(
                "&{}; is not known: write the character itself",
                quote_untrusted(reference)
            )))
        }
    }
}

fn xml_error(what: impl Into<String>) -> DublinCoreError {
    DublinCoreError::Xml { what: what.into() }
}

/// The reader's words may repeat those of the document.
fn malformed_xml(error: &dyn std::error::Error) -> DublinCoreError {
    xml_error(truncate_untrusted(&error.to_string(), 200))
}
