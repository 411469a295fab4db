//! Labels compare by meaning, not by spelling (1.3).

/// Implements `Eq` and `Hash` for a form by its method `meaning`.
macro_rules! compared_by_meaning {
    ($form:ident) => {
        impl<S: AsRef<str>, T: AsRef<str>> PartialEq<$form<T>> for $form<S> {
            fn eq(&self, other: &$form<T>) -> bool {
                self.meaning() == other.meaning()
            }
        }

        impl<S: AsRef<str>> Eq for $form<S> {}

        impl<S: AsRef<str>> std::hash::Hash for $form<S> {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.meaning().hash(state);
            }
        }
    };
}
