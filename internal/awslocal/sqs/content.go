package sqs

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// attribute is a message attribute, or a message system attribute.
type attribute struct {
	DataType    string
	StringValue *string `json:",omitempty"`
	BinaryValue []byte  `json:",omitempty"`
}

func (a attribute) binary() bool { return strings.HasPrefix(a.DataType, "Binary") }

func (a attribute) value() string {
	if a.binary() {
		return string(a.BinaryValue)
	}
	if a.StringValue == nil {
		return ""
	}
	return *a.StringValue
}

var (
	attributeName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,256}$`)
	attributeType = regexp.MustCompile(`^(String|Number|Binary)(\..+)?$`)
	reservedName  = regexp.MustCompile(`(?i)^(aws|amazon)\.`)
)

// maxAttributes is per message ("Amazon SQS message quotas").
const maxAttributes = 10

// checkContent checks body and attributes and returns how many bytes they count:
// names, types and values of attributes are part of a message's size.
func checkContent(body string, attributes map[string]attribute) (size int, err error) {
	if body == "" {
		return 0, missingParameter("MessageBody")
	}
	if !validText(body) {
		return 0, newError("InvalidMessageContents", "InvalidMessageContents", "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF")
	}
	if len(attributes) > maxAttributes {
		return 0, invalidParameter("Number of message attributes [%d] exceeds the allowed maximum [%d].", len(attributes), maxAttributes)
	}
	size = len(body)
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		if err := checkMessageAttribute(name, a); err != nil {
			return 0, err
		}
		size += len(name) + len(a.DataType) + len(a.value())
	}
	return size, nil
}

func checkMessageAttribute(name string, a attribute) error {
	if !attributeName.MatchString(name) || reservedName.MatchString(name) ||
		strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, "..") {
		return invalidParameter("The message attribute name '%s' is invalid.", name)
	}
	if !attributeType.MatchString(a.DataType) || len(a.DataType) > 256 {
		return invalidParameter("The message attribute '%s' has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String.", name)
	}
	value := a.value()
	if value == "" {
		return invalidParameter("The message attribute '%s' must contain a non-empty message attribute value of its type.", name)
	}
	if !a.binary() && !validText(value) {
		return invalidParameter("The message attribute '%s' contains invalid characters.", name)
	}
	if strings.HasPrefix(a.DataType, "Number") {
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return invalidParameter("Can't cast the value of message (user) attribute '%s' to a number.", name)
		}
	}
	return nil
}

// validText says whether s has only the characters XML 1.0 allows, as SQS demands.
func validText(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		switch {
		case r == 0x9, r == 0xA, r == 0xD:
		case r < 0x20, r == 0xFFFE, r == 0xFFFF:
			return false
		}
	}
	return true
}

// validID says whether s is fit as a group id, deduplication id or receive
// request attempt id: up to 128 ASCII letters, digits and punctuation marks.
func validID(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= 128
}

func textMD5(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// attributesMD5 is the digest SQS answers for attributes, empty without any:
// "Calculating the MD5 message digest for message attributes" in the Developer Guide.
func attributesMD5(attributes map[string]attribute) string {
	if len(attributes) == 0 {
		return ""
	}
	h := md5.New()
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		hashPart(h, name)
		hashPart(h, a.DataType)
		transport := byte(1)
		if a.binary() {
			transport = 2
		}
		h.Write([]byte{transport})
		hashPart(h, a.value())
	}
	return hex.EncodeToString(h.Sum(nil))
}

func hashPart(h hash.Hash, s string) {
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(s))))
	h.Write([]byte(s))
}
