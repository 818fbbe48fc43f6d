//! Every kind of input behind one type.
