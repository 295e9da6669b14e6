// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
// What test benches use, and sources name in functions that no kernel calls: text, files and containers of a host.
#pragma once
#include <iostream>
#include <stddef.h>
#include <type_traits>
namespace std {
struct string {
    typedef char *iterator;
    string();
    string(const char *text);
    string(const char *text, const char *other);
    const char *c_str() const;
    unsigned long size() const;
    iterator begin();
    iterator end();
    iterator erase(iterator from, iterator to);
    char &operator[](unsigned long at);
    friend string operator+(const string &left, const string &right);
    friend bool operator==(const string &left, const string &right);
};
string to_string(int);
float stof(const string &text);
int stoi(const string &text);
struct ios { static const int app = 1, binary = 2, in = 4, out = 8; };
typedef ios ios_base;
struct istream {
    template <typename _AP_T> istream &operator>>(_AP_T &value);
    explicit operator bool() const;
    bool fail() const;
    bool good() const;
    bool eof() const;
};
struct ifstream : istream {
    ifstream();
    ifstream(const char *name, int how = 0);
    ifstream(const string &name, int how = 0);
    void open(const string &name, int how = 0);
    bool is_open() const;
    void close();
};
struct ofstream : ostream {
    ofstream();
    ofstream(const string &name, int how = 0);
    void open(const string &name, int how = 0);
    bool is_open() const;
    void close();
};
typedef ofstream fstream;
struct istringstream : istream { istringstream(const string &text); };
struct ostringstream : ostream { string str() const; };
typedef ostringstream stringstream;
bool getline(istream &from, string &line, char end = 0);
template <typename _AP_T> struct vector {
    typedef _AP_T *iterator;
    typedef const _AP_T *const_iterator;
    vector();
    vector(unsigned long size);
    unsigned long size() const;
    iterator begin();
    iterator end();
    const_iterator cbegin() const;
    const_iterator cend() const;
    _AP_T &operator[](unsigned long at);
    void push_back(const _AP_T &value);
};
template <typename _AP_T, typename _AP_U> struct pair { _AP_T first; _AP_U second; };
template <typename _AP_K, typename _AP_T> struct map {
    typedef pair<const _AP_K, _AP_T> *iterator;
    iterator begin();
    iterator end();
    iterator find(const _AP_K &key);
    unsigned long count(const _AP_K &key) const;
    _AP_T &operator[](const _AP_K &key);
};
template <typename _AP_I, typename _AP_T> void copy(_AP_I from, _AP_I to, _AP_T into);
template <typename _AP_I, typename _AP_T> _AP_I remove(_AP_I from, _AP_I to, const _AP_T &value);
template <typename _AP_I, typename _AP_T> void replace(_AP_I from, _AP_I to, const _AP_T &old, const _AP_T &value);
template <typename _AP_I, typename _AP_T> void fill_n(_AP_I from, unsigned long count, const _AP_T &value);
}
