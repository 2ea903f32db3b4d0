package wire

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

const testdata = "../../testdata/wire"

// publishedRPC is one call in the published tables of a release.
type publishedRPC struct {
	Name            string   `json:"rpc"`
	FunctionID      string   `json:"function_id"`
	Args            []string `json:"args"`
	RequestHash     string   `json:"request_type_hash"`
	RequestLiteral  string   `json:"request_literal_hex"`
	Response        string   `json:"response"`
	ResponseHash    string   `json:"response_type_hash"`
	ResponseLiteral string   `json:"response_literal_hex"`
	RequestCompat   bool     `json:"request_has_compat"`
	ResponseCompat  bool     `json:"response_has_compat"`
}

type publishedField struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Compat int    `json:"compat"`
}

type publishedType struct {
	Name   string           `json:"name"`
	Kind   string           `json:"kind"`
	Fields []publishedField `json:"fields"`
}

type publishedTable struct {
	RPCs  []publishedRPC  `json:"rpcs"`
	Types []publishedType `json:"types"`
}

func readTable(t testing.TB, name string) publishedTable {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testdata, name))
	if err != nil {
		t.Fatal(err)
	}
	var table publishedTable
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return table
}

func TestTableMatchesReleases(t *testing.T) {
	for _, tt := range []struct {
		file    string
		release Release
		rpcs    int
	}{
		{"rpc.json", R0313, 64},
		{"rpc14.json", R0314, 81},
	} {
		t.Run(tt.file, func(t *testing.T) {
			table := readTable(t, tt.file)
			if len(table.RPCs) != tt.rpcs {
				t.Fatalf("%d calls published, want %d", len(table.RPCs), tt.rpcs)
			}
			served := 0
			for _, row := range Rows() {
				if row.Since <= tt.release {
					served++
				}
			}
			if served != tt.rpcs {
				t.Errorf("%d rows exist in release %v, want %d", served, tt.release, tt.rpcs)
			}
			for _, p := range table.RPCs {
				c, ok := calls[p.Name]
				if !ok {
					t.Errorf("%s: no row", p.Name)
					continue
				}
				row := c.Row()
				var form RequestForm
				for _, f := range row.Requests {
					if f.Since <= tt.release {
						form = f
						break
					}
				}
				check := func(what, got, want string) {
					if got != want {
						t.Errorf("%s: %s is %s, want %s", p.Name, what, got, want)
					}
				}
				check("function id", fmt.Sprintf("0x%08x", row.ID), p.FunctionID)
				if len(p.Args) != 0 {
					check("request hash", fmt.Sprintf("0x%08x", form.Hash), p.RequestHash)
				}
				check("request literal", hex.EncodeToString(form.Literal), p.RequestLiteral)
				check("response hash", fmt.Sprintf("0x%08x", row.ResponseHash), p.ResponseHash)
				check("response literal", hex.EncodeToString(row.ResponseLiteral), p.ResponseLiteral)
				if tt.release >= compatSince {
					check("request compat", fmt.Sprint(row.RequestCompat), fmt.Sprint(p.RequestCompat))
					check("response compat", fmt.Sprint(row.ResponseCompat), fmt.Sprint(p.ResponseCompat))
				}
			}
		})
	}
}
