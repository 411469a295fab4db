//! Labels compare by what they mean, not by how they are spelled (1.3).

/// Makes a form equal to its other spellings, and hash like them, by its method `meaning`.
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
